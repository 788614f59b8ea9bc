"""Whole lines from the chunks of a log, many at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from trainer.kube.podlogs.unfinished_line import WRITTEN_OVER_LIMIT, UnfinishedLine


class LineBlocks:
    """Puts chunks together so that each block ends where a line does.

    The work per chunk does not depend on the number of its lines, and a line over many chunks is copied once. Of a line
    that is written over and longer than `limit` (default: 64 KiB) its last state is left, see `UnfinishedLine`.

    `skip` gets the first bytes of each other line that is longer than `limit` without its newline, after the blocks
    before it.
    """

    __slots__ = ("_limit", "_line", "_skip")

    def __init__(self, skip: Callable[[bytes], None], *, limit: int | None = None) -> None:
        self._skip = skip
        self._limit = limit
        self._line = UnfinishedLine(limit)

    def of(self, chunk: bytes) -> Iterator[bytes]:
        """The lines that end in a chunk; the rest is kept for the next one."""
        end = chunk.rfind(b"\n") + 1
        if not end:
            self._line.add(chunk)
            return
        block = chunk[:end]
        if self._line.is_shortened:
            first = block.find(b"\n")
            self._line.add(block[:first])
            yield from self.rest()
            block = block[first + 1 :]
        elif self._line:
            block = b"".join((self._line.kept, block))
            self._line = UnfinishedLine(self._limit)
        yield from self._within_limit(block)
        self._line.add(chunk[end:])

    def rest(self) -> Iterator[bytes]:
        """The incomplete last line, completed by a newline."""
        line, self._line = self._line, UnfinishedLine(self._limit)
        if line or line.is_shortened:
            yield from self._completed(line)

    def take_state(self) -> bytes:
        """Timestamp and last state of the incomplete last line; empty without a new one, see `UnfinishedLine`."""
        return self._line.take_state()

    def _completed(self, line: UnfinishedLine) -> Iterator[bytes]:
        whole = line.finish()
        if whole is None:
            self._skip(line.head)
        else:
            yield b"".join((whole, b"\n"))

    def _within_limit(self, block: bytes) -> Iterator[bytes]:
        limit = WRITTEN_OVER_LIMIT if self._limit is None else self._limit
        if len(block) - 1 <= limit or (self._limit is None and b"\r" not in block):
            if block:
                yield block
            return
        longest = limit + 1
        begin = start = 0
        # Jumps from one newline to the last one that a line of the greatest length allows.
        while len(block) - start > longest:
            end = block.rfind(b"\n", start, start + longest) + 1
            if not end:
                if begin < start:
                    yield block[begin:start]
                begin = end = block.find(b"\n", start + longest) + 1
                line = UnfinishedLine(self._limit)
                line.add(block[start : end - 1])
                yield from self._completed(line)
            start = end
        if begin < len(block):
            yield block[begin:] if begin else block
