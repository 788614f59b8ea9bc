"""Where the last lines of a log begin, so that it is followed from there."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from trainer.kube.podlogs.container_log import ContainerLog
from trainer.kube.podlogs.instant import Instant
from trainer.kube.podlogs.position import instant_of
from trainer.kube.podlogs.unfinished_line import HEAD_BYTES

_FACTOR = 8
"""Factor by which more lines are requested if too few of the last ones count."""


class Tail:
    """Drops the lines before the last ones of a log; made by `last_lines`."""

    def __init__(self, first: bytes = b"", *, keeps_first: bool = True) -> None:
        self._first = first[:HEAD_BYTES]
        self._keeps_first = keeps_first
        self._instant = instant_of(first)

    @property
    def since(self) -> Instant | None:
        """Where to start reading the log; None: at its beginning."""
        return self._instant

    def of(self, block: bytes) -> bytes:
        """The remaining lines of a block; called with all blocks since `since`, in order."""
        if self._instant is None:
            return block
        start = 0
        while start < len(block):
            end = block.index(b"\n", start) + 1
            head = block[start : min(end - 1, start + HEAD_BYTES)]
            instant = instant_of(head)
            if head == self._first:
                start = start if self._keeps_first else end
                self._instant = None
                break
            if instant is not None and instant > self._instant:  # the line is gone, as after a log rotation
                self._instant = None
                break
            start = end
        return block[start:]


async def last_lines(
    log_of: Callable[[int], ContainerLog], lines: int, *, is_shown: Callable[[bytes], bool] = lambda _: True
) -> Tail:
    """A `Tail` that keeps the last lines of a log for which `is_shown`, and all later ones.

    `log_of` opens the log with so many `ContainerLogOptions.tail_lines`. Raises what `ContainerLog.read` does.
    """
    requested = max(lines, 1)
    while True:
        last: deque[bytes] = deque(maxlen=max(lines, 1))
        count = 0
        async for block in log_of(requested).read():
            count += block.count(b"\n")
            last.extend(line[:HEAD_BYTES] for line in block.split(b"\n")[:-1] if not lines or is_shown(line))
        if len(last) == last.maxlen or count < requested:
            return Tail(last[0] if last else b"", keeps_first=lines > 0)
        requested *= _FACTOR
