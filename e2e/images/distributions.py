"""What is installed in an image, compared with what is pinned."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

from e2e.images.container import Container

ROOT = Path(__file__).parents[2]
_LISTED = """
import importlib.metadata as m, json
print(json.dumps({d.name: [d.version, d.requires or []] for d in m.distributions()}))
"""


def installed(container: Container, python: str = "python") -> dict[str, tuple[str, list[str]]]:
    """Version and requirements of each distribution that the Python of an image finds."""
    return {normalised(name): tuple(each) for name, each in json.loads(container.python(_LISTED, python)).items()}


def pins() -> dict[str, str]:
    """The versions of constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return {normalised(name): version for name, _, version in (line.partition("==") for line in lines) if version}


def named(requirements: Iterable[str]) -> set[str]:
    """The names of requirements."""
    return {normalised(re.split(r"[^\w.-]", requirement)[0]) for requirement in requirements}


def normalised(name: str) -> str:
    """As package indexes compare names."""
    return re.sub(r"[-_.]+", "-", name).lower()
