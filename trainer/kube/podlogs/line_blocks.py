"""Whole lines from the chunks of a log, many at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

HEAD_BYTES = 64
"""So much of a line is kept where only its beginning matters: more than the longest timestamp."""


class LineBlocks:
    """Puts chunks together so that each block ends where a line does.

    The work per chunk does not depend on the number of its lines, and a line over many chunks is copied once.

    `skip` gets the first bytes of each line that is longer than `limit` without its newline, once its length is known,
    and after the blocks before it.
    """

    __slots__ = ("_is_skipping", "_limit", "_rest", "_skip")

    def __init__(self, skip: Callable[[bytes], None], *, limit: int | None = None) -> None:
        self._skip = skip
        self._limit = limit
        self._rest: bytes | bytearray = b""
        self._is_skipping = False

    def of(self, chunk: bytes) -> Iterator[bytes]:
        """The lines that end in a chunk; the rest is kept for the next one."""
        if self._is_skipping:
            end = chunk.find(b"\n") + 1
            if not end:
                return
            self._is_skipping = False
            chunk = chunk[end:]
        end = chunk.rfind(b"\n") + 1
        if not end:
            self._keep(chunk)
            return
        block = chunk[:end]
        if self._rest:
            block = b"".join((self._rest, block))
            self._rest = b""
        yield from self._within_limit(block)
        self._keep(chunk[end:])

    def rest(self) -> Iterator[bytes]:
        """The incomplete last line, completed by a newline."""
        if self._rest:
            yield b"".join((self._rest, b"\n"))
            self._rest = b""

    def _keep(self, part: bytes) -> None:
        rest = self._rest
        if self._limit is not None and len(rest) + len(part) > self._limit:
            self._rest = b""
            self._is_skipping = True
            self._skip(b"".join((rest[:HEAD_BYTES], part[:HEAD_BYTES]))[:HEAD_BYTES])
        elif not rest:
            self._rest = part
        elif isinstance(rest, bytearray):
            rest += part
        else:
            self._rest = bytearray().join((rest, part))

    def _within_limit(self, block: bytes) -> Iterator[bytes]:
        if self._limit is None or len(block) - 1 <= self._limit:
            yield block
            return
        longest = self._limit + 1
        begin = start = 0
        # Jumps from one newline to the last one that a line of the greatest length allows.
        while len(block) - start > longest:
            end = block.rfind(b"\n", start, start + longest) + 1
            if not end:
                if begin < start:
                    yield block[begin:start]
                begin = end = block.find(b"\n", start + longest) + 1
                self._skip(block[start : min(start + HEAD_BYTES, end - 1)])
            start = end
        if begin < len(block):
            yield block[begin:] if begin else block
