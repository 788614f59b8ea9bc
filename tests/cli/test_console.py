"""What commands print."""

from __future__ import annotations

import re

import pytest
from rich.text import Text

from trainer.cli.console import (
    duration,
    escaped,
    note,
    output,
    printable,
    say,
    say_json,
    short_duration,
    terminal_width,
)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        pytest.param(-1, "0 s", id="a clock that went back"),
        pytest.param(59.9, "59 s", id="seconds"),
        pytest.param(4 * 86400 + 3 * 3600, "4 d 03 h", id="days"),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    """A length of time is reported in its two largest units."""
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        pytest.param(-5, "0s", id="a clock that went back"),
        pytest.param(59, "59s", id="seconds"),
        pytest.param(86400 * 400, "400d", id="more than a year"),
    ],
)
def test_short_duration(seconds: float, text: str) -> None:
    """In columns a length of time has a smaller unit only while it matters."""
    assert short_duration(seconds) == text


@pytest.mark.parametrize(
    ("text", "line", "with_blanks"),
    [
        pytest.param(" a  b\n\tc ", "a b c", r" a  b\n        c ", id="blanks"),
        pytest.param("größe 損失 [b]", "größe 損失 [b]", "größe 損失 [b]", id="letters"),
        pytest.param("\ud800", r"\ud800", r"\ud800", id="half a character"),
    ],
)
def test_printable(text: str, line: str, with_blanks: str) -> None:
    """What others have written is shown so that no terminal obeys it."""
    assert printable(text) == line
    assert escaped(text) == with_blanks


def test_colours_in_a_pipe(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Where FORCE_COLOR asks for colours, a pipe has them, and neither an end of lines nor lines that move."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")

    say(Text("x" * 200, style="red"))

    assert re.sub(r"\x1b\[\d*m", "", capsys.readouterr().out) == "x" * 200 + "\n"
    assert (terminal_width(output()), output().is_interactive, output().is_terminal) == (None, False, True)


def test_say_leaves_text_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """Text that looks like markup, or is longer than a line, is printed as it is."""
    text = "[bold]x[/bold] :smile:" + " long" * 50

    say(text)

    assert capsys.readouterr().out == f"{text}\n"


def test_notes_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    """What is good to know beside a result is one line that is no part of the result."""
    note("as shipped\n  with trainer")
    note("[odd]", kind="warning")

    assert capsys.readouterr() == ("", "note: as shipped with trainer\nwarning: [odd]\n")


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    """JSON is indented, keeps the order of fields, and does not escape letters."""
    say_json([{"name": "über", "enabled": True}])

    assert capsys.readouterr().out == '[\n  {\n    "name": "über",\n    "enabled": true\n  }\n]\n'
