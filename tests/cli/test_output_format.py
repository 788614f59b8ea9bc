"""Answers for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.cli.output_format import say_json

if TYPE_CHECKING:
    import pytest


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    """JSON is indented, keeps the order of fields, and does not escape letters."""
    say_json([{"name": "über", "enabled": True}])

    assert capsys.readouterr().out == '[\n  {\n    "name": "über",\n    "enabled": true\n  }\n]\n'
