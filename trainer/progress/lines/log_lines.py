"""Lines of a training's log as people read them, without the messages about its progress."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from trainer.api.progress_tags import TAG_END, without_message
from trainer.kube.podlogs.position import instant_of
from trainer.progress.lines.terminal_line import is_overwritten, may_be_special, shown


class LogLine(NamedTuple):
    """One line of a container's log."""

    stamp: str
    """The timestamp of the container runtime; empty without one."""
    text: str
    """The line without its end, as a terminal shows it, see `terminal_line`: it may have colours."""
    is_overwritten: bool = False
    """Whether the next line takes its place: that of a progress bar below another, or that a message has ended."""


def log_lines(block: bytes, *, with_messages: bool = False, with_overwritten: bool = False) -> Iterator[LogLine]:
    """The lines of a block of whole lines, each with its timestamp, from `ContainerLog`.

    Messages about progress are left out by default, and lines that the next one takes the place of.
    """
    may_have_messages = not with_messages and TAG_END in block
    is_special = may_be_special(block)
    second = b""
    for line in block.removesuffix(b"\n").split(b"\n"):
        # Most lines have the same second as the line before, so that few timestamps are parsed.
        if not (second and line.startswith(second)):
            second = line[: len(b"2026-01-01T00:00:00.")] if instant_of(line) is not None else b""
        stamp, _, written = line.partition(b" ") if second else (b"", b"", line)
        kept = without_message(written) if may_have_messages and second else written
        if kept is None:
            continue
        # What a message is behind is the state of a bar, which goes on.
        vanishes = kept is not written or (is_special and is_overwritten(kept))
        if with_overwritten or not vanishes:
            text = kept.decode(errors="replace")
            yield LogLine(stamp.decode(errors="replace"), shown(text) if is_special else text, vanishes)
