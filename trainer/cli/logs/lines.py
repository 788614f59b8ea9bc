"""Lines of a log as people read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from trainer.api.progress_tags import TAG_END, without_message
from trainer.kube.podlogs.position import instant_of

if TYPE_CHECKING:
    from collections.abc import Iterator


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
