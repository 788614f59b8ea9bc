"""How commands that answer a question print the answer: for people, or as JSON for programs."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

from trainer.cli.console import output


class OutputFormat(StrEnum):
    """What `--output` may be."""

    TEXT = "text"
    JSON = "json"


Format = Annotated[OutputFormat, typer.Option("--output", "-o", help="Output format.")]


def say_json(answer: object) -> None:
    """Print the answer as JSON, indented, so that people can read it as well."""
    output().file.write(json.dumps(answer, indent=2, ensure_ascii=False) + "\n")
