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
    """The timestamp of the container runtime; empty without one."""
    text: str
    """The line without its end."""


def log_lines(block: bytes, *, with_messages: bool = False) -> Iterator[LogLine]:
    """The lines of a block of whole lines, each with its timestamp, from `ContainerLog`.

    Without messages about progress only the rest of a line with one is left, such as a progress bar.
    """
    may_have_messages = not with_messages and TAG_END in block
    second = b""
    for line in block.removesuffix(b"\n").split(b"\n"):
        # Most lines have the same second as the line before, so that few timestamps are parsed.
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
    """Prints lines of several sources, each source in its own colour on a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._styles: dict[str, str] = {}

    def print(self, source: str, *texts: str) -> None:
        """Print lines: each `source | text`, or the text alone when the source is empty."""
        if not source:
            self._write(texts)
            return
        # A progress bar overwrites itself: only its last state counts.
        shown = [text.rsplit("\r", 1)[-1] for text in texts]
        prefix = f"{source} | "
        if not self._console.is_terminal:
            self._write(prefix + text for text in shown)
            return
        style = self._styles.setdefault(source, _STYLES[len(self._styles) % len(_STYLES)])
        for text in shown:
            self._console.print(Text(prefix, style=style).append(text, style="default"))

    def _write(self, lines: Iterable[str]) -> None:
        """Write without Rich, which is limited to a few thousand lines a second."""
        file = self._console.file
        file.write("".join(f"{line}\n" for line in lines))
        file.flush()
