"""Where the last lines of a log begin, so that it is followed from there."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

from trainer.kube.podlogs.line_blocks import LineBlocks
from trainer.kube.podlogs.position import instant_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from trainer.kube.client import Client, LogOptions
    from trainer.kube.podlogs.instant import Instant
    from trainer.progress.containers import StartedContainer

_FACTOR = 8
"""Factor by which more lines are requested if too few of the last ones count."""


class LogTail:
    """Drops the lines before the last ones of a log; made by `before_last`."""

    def __init__(self, first: bytes = b"", *, keeps_first: bool = True) -> None:
        self._first = first
        self._keeps_first = keeps_first
        self._instant = instant_of(first) if first else None

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
            line = block[start : end - 1]
            instant = instant_of(line)
            if line == self._first:
                start = start if self._keeps_first else end
                self._instant = None
                break
            if instant is not None and instant > self._instant:  # the line is gone, as after a log rotation
                self._instant = None
                break
            start = end
        return block[start:]


async def before_last(
    client: Client,
    container: StartedContainer,
    lines: int,
    options: LogOptions,
    *,
    is_shown: Callable[[bytes], bool] = lambda _: True,
) -> LogTail:
    """A `LogTail` that keeps the last lines of a container's log for which `is_shown`, and all later ones."""
    requested = max(lines, 1)
    while True:
        last: deque[bytes] = deque(maxlen=max(lines, 1))
        count = 0
        async for line in _last_lines(client, container, requested, options):
            count += 1
            if not lines or is_shown(line):
                last.append(line)
        if len(last) == last.maxlen or count < requested:
            return LogTail(last[0] if last else b"", keeps_first=lines > 0)
        requested *= _FACTOR


async def _last_lines(
    client: Client, container: StartedContainer, count: int, options: LogOptions
) -> AsyncIterator[bytes]:
    requested = replace(options, container=container.container, timestamps=True, tail_lines=count)
    blocks = LineBlocks(lambda _: None)
    async with client.logs(container.pod, container.namespace, requested) as chunks:
        async for chunk in chunks:
            for block in blocks.of(chunk):
                for line in block.split(b"\n")[:-1]:
                    yield line
    for line in blocks.rest():
        yield line.removesuffix(b"\n")
