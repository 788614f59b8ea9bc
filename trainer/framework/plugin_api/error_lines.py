"""Finds the line of a log that says why a program has ended.

Python prints the exception below the frames of its traceback, at the beginning of a line; programs of other languages
print a line with a word of failure. Lines come from programs: each is searched in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from trainer.api.launcher_prefix import LauncherPrefix

_NAME = r"(?:[A-Za-z_]\w{0,99}\.){0,20}[A-Za-z_]\w{0,99}"
_RAISED = re.compile(rf"{_NAME}(?:Error|Exception|Interrupt|Exit|Warning|Failure|Timeout)(?:: .*|:)?$")
"""The last line of a traceback, by the usual names of exceptions."""
_ANY_RAISED = re.compile(rf"{_NAME}(?:: .*)?$")
"""The same by any name; it counts only directly below a frame."""
_OF_ERROR = re.compile(
    r"\b(?:error|fatal|panic(?:ked)?|exception|fail(?:ed|ure)|cannot|could not|unable to|abort(?:ed|ing)?|assert\w*"
    r"|segmentation fault|core dumped|no such|not found|denied|killed|terminate called|out of memory|invalid)\b",
    re.IGNORECASE,
)
_LOST = re.compile(
    r"connection (?:was )?(?:closed|reset|refused|lost|aborted)|broken pipe|socket (?:timeout|closed)"
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
    for index in range(len(bare) - 1, -1, -1):
        above = bare[max(0, index - 4) : index]
        is_below_frame = bool(above) and above[-1].startswith("  ") and any("File " in line for line in above)
        if _RAISED.match(bare[index]) or (is_below_frame and _ANY_RAISED.match(bare[index])):
            return bare[index]
    return next((line.strip() for line in reversed(lines) if _OF_ERROR.search(line)), "")


def is_lost_connection(lines: Sequence[str]) -> bool:
    """Whether a program has ended since it lost another one, so that the cause is most likely there."""
    return _LOST.search(error_line(lines)) is not None
