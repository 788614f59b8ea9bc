"""The tags that set the messages about progress apart from the other lines of a log (KEP-2779).

A tag counts at the start of a line, or behind a progress bar, which is to say a carriage return; somewhere else it is
ordinary text, such as code that is printed.
"""

from __future__ import annotations

import re
from typing import Final

TAG: Final = "[trainer.kubeflow.org/v2alpha1/trainjob/trainerStatus]"
"""The tag at the beginning of a message, for version v2alpha1 of the TrainJob."""
TAGS: Final = (TAG, "[trainer.kubeflow.org/v1alpha1/trainjob/trainerStatus]")
"""All tags that are understood; their messages are the same."""
TAG_END: Final = b"/trainjob/trainerStatus]"
"""The common end of all tags, searched for once instead of once per tag."""

_TAGS = tuple(tag.encode() for tag in TAGS)
_TAG_LENGTH = len(_TAGS[0])
_NOTHING_SHOWN = re.compile(rb"(?:[ \t\v\f\r]|\x1b\[[0-9;?]*[A-Za-z])*")
"""Blanks, and the terminal control sequences that progress bars leave behind when they make room."""


def payload_of(text: bytes) -> bytes | None:
    """The message of a line: what follows its first tag; None if the line is no message."""
    at = _find_tag(text, 0)
    if at < 0:
        return None
    if not _NOTHING_SHOWN.fullmatch(text, 0, at):
        overwritten = text.find(b"\r")
        if overwritten < 0:
            return None
        at = _find_tag(text, max(at, overwritten)) if at < overwritten else at
    return text[at + _TAG_LENGTH :] if at >= 0 else None


def without_message(text: bytes) -> bytes | None:
    """A line without its message: all of it, or the progress bar before the message; None if it is only a message."""
    payload = payload_of(text)
    if payload is None:
        return text
    left = text[: len(text) - len(payload) - _TAG_LENGTH]
    return None if _NOTHING_SHOWN.fullmatch(left) else left


def _find_tag(text: bytes, start: int) -> int:
    """Where the next tag of any version begins, or -1."""
    return min((at for at in (text.find(tag, start) for tag in _TAGS) if at >= 0), default=-1)
