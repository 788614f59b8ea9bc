"""The tags that set the messages about progress apart from the other lines of a log (KEP-2779).

A tag counts at the start of a line, behind the prefix of a launcher, or behind a progress bar, which is to say a
carriage return; somewhere else it is ordinary text, such as code that is printed.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from trainer.api.launcher_prefix import NOTHING_SHOWN, LauncherPrefix

TAG: Final = "[trainer.kubeflow.org/v2alpha1/trainjob/trainerStatus]"
"""The tag at the beginning of a message, for version v2alpha1 of the TrainJob."""
TAGS: Final = (TAG, "[trainer.kubeflow.org/v1alpha1/trainjob/trainerStatus]")
"""All tags that are understood; their messages are the same."""
TAG_END: Final = b"/trainjob/trainerStatus]"
"""The common end of all tags, searched for once instead of once per tag."""

_TAGS = tuple(tag.encode() for tag in TAGS)
_TAG_LENGTH = len(_TAGS[0])
_NOTHING_SHOWN = re.compile(NOTHING_SHOWN.encode())


class TaggedText(NamedTuple):
    """A line with a tag."""

    before: bytes
    """What stands before the tag: such as a progress bar, and nothing but what launchers write in most cases."""
    payload: bytes
    """What follows the tag."""
    ranks: tuple[int, ...]
    """See `LauncherPrefix`."""
    is_message: bool
    """Whether the tag counts where it is."""
    shows_nothing: bool
    """Whether people see nothing of `before` but prefixes of launchers."""

    @classmethod
    def of(cls, text: bytes) -> TaggedText | None:
        """The line with its first tag that counts, or else the first; None without a tag."""
        at = _find_tag(text, 0)
        if at < 0:
            return None
        if at == 0:  # nearly all
            return cls(b"", text[_TAG_LENGTH:], (), is_message=True, shows_nothing=True)
        prefix = LauncherPrefix.of(text, at)
        shows_nothing = _NOTHING_SHOWN.fullmatch(text, prefix.length, at) is not None
        is_message = shows_nothing
        if not shows_nothing and (overwritten := text.find(b"\r")) >= 0:
            behind = _find_tag(text, max(at, overwritten))
            at, is_message = max(at, behind), behind >= 0
        return cls(text[:at], text[at + _TAG_LENGTH :], prefix.ranks, is_message, shows_nothing)


def without_message(text: bytes) -> bytes | None:
    """A line without its message: all of it, or the progress bar before the message; None if it is only a message."""
    tagged = TaggedText.of(text)
    if tagged is None or not tagged.is_message:
        return text
    return None if tagged.shows_nothing else tagged.before


def _find_tag(text: bytes, start: int) -> int:
    """Where the next tag of any version begins, or -1."""
    return min((at for at in (text.find(tag, start) for tag in _TAGS) if at >= 0), default=-1)
