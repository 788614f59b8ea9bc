"""Finds the line of a log that says why a program has ended.

Python prints the exception below the frames of its traceback, at the beginning of a line; programs of other languages
print a line with a word of failure. Lines come from programs: each is searched in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from trainer.api.launcher_prefix import LauncherPrefix

_NAME = r"(?:[A-Za-z_]\w{0,99}\.){0,20}[A-Za-z_]\w{0,99}"
_RAISED = re.compile(rf"{_NAME}(?:Error|Exception|Failure|Timeout)(?:: .*|:)?$")
"""The last line of a traceback, by the usual names of exceptions."""
_ANY_RAISED = re.compile(rf"(?!\w*Warning\b|KeyboardInterrupt|SystemExit){_NAME}(?:: .*)?$")
"""The same by any name; it counts only directly below a frame."""
_ENDED = re.compile(r"(?:KeyboardInterrupt|SystemExit)\b")
"""The end of a program that was interrupted, or that exits by itself; an exception above it is the cause."""
_OF_ERROR = re.compile(
    r"\b(?:error|fatal|panic(?:ked)?|exception|fail(?:ed|ure)|cannot|could not|unable to|abort(?:ed|ing)?|assert\w*"
    r"|segmentation fault|core dumped|no such|not found|denied|killed|terminate called|out of memory|invalid)\b",
    re.IGNORECASE,
)
_LOST = re.compile(
    r"connection (?:was )?(?:closed|reset|aborted) by (?:the )?(?:peer|remote)|broken pipe|socket (?:timeout|closed)"
    r"|remote (?:process|peer) exited|(?:peer|remote end) (?:has )?closed|NCCL (?:remote|communicator was aborted)"
    r"|ncclRemoteError|heartbeat timeout|coordination service|DistNetworkError"
    r"|timed? ?out (?:initializing|waiting)|SignalException: Process \d+ got signal: 15",
    re.IGNORECASE,
)


def error_line(lines: Sequence[str]) -> str:
    """The line that says best why a program has ended; empty if none says it.

    An exception is returned without the prefixes of launchers; of other lines they are part, such as `sh: ` of a shell.
    """
    bare = [line[LauncherPrefix.of(line).length :].rstrip() for line in lines]
    end = len(bare)
    while (index := _last_exception(bare, end)) is not None:
        ignored = _beginning_if_ignored(bare, index)
        if ignored is None:
            return bare[index]
        end = ignored
    if (ended := next(filter(_ENDED.match, reversed(bare)), None)) is not None:
        return ended
    return next((line.strip() for line in reversed(lines) if _OF_ERROR.search(line)), "")


def is_exception(line: str) -> bool:
    """Whether a line is the last one of a traceback, by the usual names of exceptions."""
    return _RAISED.match(line) is not None


def _last_exception(lines: Sequence[str], end: int) -> int | None:
    for index in range(end - 1, -1, -1):
        above = lines[max(0, index - 4) : index]
        is_below_frame = bool(above) and above[-1].startswith("  ") and any("File " in line for line in above)
        if _RAISED.match(lines[index]) or (is_below_frame and _ANY_RAISED.match(lines[index])):
            return index
    return None


def _beginning_if_ignored(lines: Sequence[str], index: int) -> int | None:
    """Where the traceback of an exception begins that Python has only reported, as at its end; else None."""
    start = index - 1
    while start >= 0 and lines[start].startswith((" ", "Traceback ")):
        start -= 1
    return start if start >= 0 and lines[start].startswith("Exception ignored ") else None


def is_lost_connection(lines: Sequence[str]) -> bool:
    """Whether a program has ended since it lost another one, so that the cause is most likely there."""
    return _LOST.search(error_line(lines)) is not None
