"""What commands print: results on standard output, errors as one line on standard error."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import IO, Annotated, Final

import typer
from rich.console import Console
from rich.text import Text

from trainer.kube.logs.escaping import visible

_ERASE_LINE: Final = "\r\x1b[2K"
_unfinished: Final[list[str]] = []
"""Lines without an end that this process shows on its terminal: one, while it does something that takes a while."""


class _PlainConsole(Console):
    """Prints text without wrapping or markup; with colours only on a terminal, or where FORCE_COLOR asks for them."""

    def __init__(self, *, stderr: bool = False, file: IO[str] | None = None) -> None:
        super().__init__(
            stderr=stderr,
            file=file,
            # What was opened to be read by a program stays without colours.
            force_terminal=None if file is None else False,
            highlight=False,
            markup=False,
            emoji=False,
            soft_wrap=True,
            # In a notebook text stays text.
            force_jupyter=False,
        )
        # With FORCE_COLOR a pipe gets colours, but no lines that move.
        self.is_interactive = self.is_interactive and self.file.isatty()

    def on_broken_pipe(self) -> None:
        """Raise a BrokenPipeError; Rich would exit instead."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def output() -> Console:
    """Standard output."""
    return _PlainConsole()


def errors() -> Console:
    """Standard error."""
    return _PlainConsole(stderr=True)


def writing_to(file: IO[str]) -> Console:
    """A file or a pipe, without colours; a BrokenPipeError says that nobody reads the pipe any more."""
    return _PlainConsole(file=file)


@contextmanager
def unfinished_line(console: Console, text: str) -> Iterator[None]:
    """Show a line without an end on standard error, a terminal, and erase it at last; notes appear before it."""
    console.file.write(text)
    console.file.flush()
    _unfinished.append(text)
    try:
        yield
    finally:
        _unfinished.remove(text)
        console.file.write(_ERASE_LINE)
        console.file.flush()


def terminal_width(console: Console) -> int | None:
    """Cells of a line of the terminal; None for a file or a pipe, whose lines have no end."""
    return console.width if console.is_terminal and console.file.isatty() else None


def say(text: str | Text = "") -> None:
    """Print one line to standard output."""
    output().print(text)


def complain(message: str) -> None:
    """Print one `error: ...` line to standard error."""
    note(message, kind="error", style="bold red")


def note(message: str, *, kind: str = "note", style: str = "bold yellow") -> None:
    """Print one `note: ...` line, or one of another kind, to standard error."""
    line = Text(f"{kind}: ", style=style).append(printable(message), style="not bold default")
    console = errors()
    if not _unfinished:
        console.print(line)
        return
    console.file.write(_ERASE_LINE)
    console.print(line)
    console.file.write(_unfinished[-1])
    console.file.flush()


def quote(origin: Path, lines: Iterable[str]) -> None:
    """Print lines of a file to standard error."""
    console = errors()
    console.print(Text(f"--- {origin}", style="dim"))
    for line in lines:
        console.print(Text(line, style="dim"))


def printable(text: str) -> str:
    r"""Foreign text as one line without control characters: an escape character becomes `\x1b`."""
    return escaped(" ".join(text.split()))


def escaped(line: str) -> str:
    """Like `printable`, for a line whose blanks matter, such as one of a log."""
    return visible(line.expandtabs())


def size(number: int) -> str:
    """Bytes for people: `12 bytes`, `1.5 KiB`, `3.0 MiB`, `2.1 GiB`."""
    if number < 1024:
        return f"{number} byte{'' if number == 1 else 's'}"
    if number < 1024**2:
        return f"{number / 1024:.1f} KiB"
    return f"{number / 1024**2:.1f} MiB" if number < 1024**3 else f"{number / 1024**3:.1f} GiB"


def duration(seconds: float) -> str:
    """A duration in its two largest units: `42 s`, `3 min 05 s`, `2 h 07 min`, `4 d 03 h`."""
    whole = max(int(seconds), 0)
    for unit, size, part, part_size in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // part_size:02d} {part}"
    return f"{whole} s"


def short_duration(seconds: float) -> str:
    """A duration for a column of a table: `42s`, `3m5s`, `13m`, `9d5h`."""
    whole = max(int(seconds), 0)
    for unit, size, part, part_size in (("d", 86400, "h", 3600), ("h", 3600, "m", 60), ("m", 60, "s", 1)):
        if whole >= size:
            count, rest = whole // size, whole % size // part_size
            return f"{count}{unit}{rest}{part}" if rest and count < _EXACT_BELOW else f"{count}{unit}"
    return f"{whole}s"


_EXACT_BELOW = 10


class OutputFormat(StrEnum):
    """Values of `--output`."""

    TEXT = "text"
    JSON = "json"


class GetFormat(StrEnum):
    """Values of `--output` of commands that list objects, as kubectl has them."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


Format = Annotated[OutputFormat, typer.Option("--output", "-o", help="Output format.")]


def say_json(answer: object) -> None:
    """Print the answer as indented JSON."""
    output().file.write(json.dumps(answer, indent=2, ensure_ascii=False) + "\n")
