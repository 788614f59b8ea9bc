"""Lines of a log as people read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from trainer.kube.podlogs.position import instant_of
from trainer.progress.protocol import NOTHING_SHOWN, TAGS, tagged_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

_TAGS = tuple(tag.encode() for tag in TAGS)


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
    may_have_messages = not with_messages and any(tag in block for tag in _TAGS)
    second = b""
    for line in block.removesuffix(b"\n").split(b"\n"):
        message = next(tagged_lines(b"%b\n" % line), None) if may_have_messages else None
        if message is not None:
            line = line[: len(line) - len(message.payload) - len(_TAGS[0])]  # noqa: PLW2901 - what is left of it
            if NOTHING_SHOWN.fullmatch(line.partition(b" ")[2]):
                continue
        # Most lines are of the same second as the one before, so that few timestamps have to be read.
        if not (second and line.startswith(second)):
            second = line[: len(b"2026-01-01T00:00:00.")] if instant_of(line) is not None else b""
        text = line.decode(errors="replace").rstrip("\r")
        if second:
            stamp, _, text = text.partition(" ")
            yield LogLine(stamp, text)
        else:
            yield LogLine("", text)
