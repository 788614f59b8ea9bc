"""Lines of logs: read from blocks, and printed with their sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rich.text import Text

from trainer.api.progress_tags import TAG_END, without_message
from trainer.kube.podlogs.position import instant_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import Console


class LogLine(NamedTuple):
    """One line of a container's log."""

    stamp: str
    """When it was written, as the container runtime says; empty when it does not."""
    text: str
    """What the container has written, without line end."""


def log_lines(block: bytes, *, with_messages: bool = False) -> Iterator[LogLine]:
    """The lines of a block of a log, as `ContainerLog` hands it on.

    Args:
        block: whole lines, each with its timestamp.
        with_messages: whether to include the messages by which a training tells programs of its progress. Of a line
            with a progress bar and a message the bar is left otherwise.
    """
    may_have_messages = not with_messages and TAG_END in block
    second = b""
    for line in block.removesuffix(b"\n").split(b"\n"):
        # Most lines are of the same second as the one before, so that few timestamps have to be read.
        if not (second and line.startswith(second)):
            second = line[: len(b"2026-01-01T00:00:00.")] if instant_of(line) is not None else b""
        if not second:
            yield LogLine("", _text(line))
            continue
        stamp, _, written = line.partition(b" ")
        shown = without_message(written) if may_have_messages else written
        if shown is not None:
            yield LogLine(stamp.decode(errors="replace"), _text(shown))


def _text(line: bytes) -> str:
    return line.decode(errors="replace").rstrip("\r")


_STYLES = ("cyan", "green", "magenta", "blue", "yellow", "bright_cyan", "bright_green", "bright_magenta")


class LogPrinter:
    """Gives each source a colour of its own where there are colours."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._styles: dict[str, str] = {}

    def print(self, source: str, *texts: str) -> None:
        """Print lines: each `source | text`, or the text alone when the source is empty."""
        if not source:
            self._write(texts)
            return
        # A progress bar overwrites itself: its last shape is the one to see.
        shown = [text.rsplit("\r", 1)[-1] for text in texts]
        prefix = f"{source} | "
        if not self._console.is_terminal:
            self._write(prefix + text for text in shown)
            return
        style = self._styles.setdefault(source, _STYLES[len(self._styles) % len(_STYLES)])
        for text in shown:
            self._console.print(Text(prefix, style=style).append(text, style="default"))

    def _write(self, lines: Iterable[str]) -> None:
        """Without Rich, which manages a few thousand lines a second; trainings print more."""
        file = self._console.file
        file.write("".join(f"{line}\n" for line in lines))
        file.flush()
