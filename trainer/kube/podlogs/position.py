"""How far a log has been read, and which lines a resumed stream repeats.

`sinceTime` of pods/log is precise to the second, so a resumed stream begins with lines that were read before. A log is
a file to which its runtime appends: what was read before is a beginning of it, and of the lines since some second so
many are repeated as were seen since that second. Counting them is exact where timestamps alone are not: several lines
may carry the same one, and those of stdout and stderr may stand in the file in another order than that of their
timestamps. The timestamps only tell where counting ends early: when the file was rotated meanwhile, or belongs to a
new run of the container, its first lines are later than all that was seen, and new.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta

from trainer.kube.podlogs.instant import Instant
from trainer.kube.podlogs.unfinished_line import HEAD_BYTES

DISORDER_NANOSECONDS = 1_000_000
"""How much earlier than the line before it a line may be: time between the look at the clock and the write."""

_SECOND = timedelta(seconds=1)
_SECOND_BYTES = len("2026-01-01T00:00:00")


def instant_of(line: bytes) -> Instant | None:
    """The timestamp with which a line begins; None if it has none."""
    stamp, _, _ = line[:HEAD_BYTES].partition(b" ")
    # Bytes that are no ASCII become characters that are in no timestamp.
    return Instant.parse(stamp.decode("latin-1"))


class Position:
    """The latest line that was read, and how many were in its second and in the one before."""

    __slots__ = ("_before", "_count", "_head", "_prefix", "_seconds", "_undated")

    def __init__(self) -> None:
        self._prefix = b""
        """The second of the latest line as its timestamp spells it."""
        self._seconds = 0
        self._head = b""
        """The beginning of the latest line."""
        self._count = 0
        self._before = 0
        self._undated = 0

    @property
    def text(self) -> str:
        """All of it in a short text, by which another process goes on."""
        stamp, blank, _ = self._head.decode("latin-1").partition(" ")
        return json.dumps([self._prefix.decode("latin-1"), stamp + blank, self._count, self._before, self._undated])

    @classmethod
    def of_text(cls, text: str) -> Position:
        """The position of a `text`.

        Raises:
            ValueError: it is none.
        """
        position = cls()
        try:
            prefix, head, position._count, position._before, position._undated = json.loads(text)
            position._prefix, position._head = prefix.encode("latin-1"), head.encode("latin-1")
        except (AttributeError, TypeError, ValueError) as error:
            raise ValueError(f"this is no position of a log: {text!r}") from error
        instant = position.instant
        position._seconds = instant.seconds if instant is not None else 0
        return position

    @property
    def instant(self) -> Instant | None:
        """When the latest line was written; None before the first line with a timestamp."""
        if not self._prefix:
            return None
        return instant_of(self._head) or Instant(self._seconds)

    def advance(self, block: bytes) -> int:
        """Go on by a block of whole lines and return their number; in an orderly log no line costs Python code."""
        lines = block.count(b"\n")
        last = block.rfind(b"\n", 0, -1) + 1
        head = block[last : last + HEAD_BYTES]
        prefix = self._prefix
        if prefix and _count(block, prefix) == lines:
            self._count += lines
            self._head = _later(self._head, head)
        elif not self._advance_to(head, block):
            for line in block.split(b"\n")[:-1]:
                self._advance_by(line[:HEAD_BYTES])
        return lines

    def _advance_to(self, head: bytes, block: bytes) -> bool:
        """Go on by a block whose last line, which begins so, is of its latest second; False if it is of another."""
        instant, prefix = instant_of(head), head[:_SECOND_BYTES]
        # Spelled alike, timestamps are sorted as bytes are.
        if instant is None or max(block.split(b"\n"))[:_SECOND_BYTES] != prefix:
            return False
        if instant.seconds < self._seconds or (instant.seconds == self._seconds and prefix != self._prefix):
            return False
        count, before = _count(block, prefix), _count(block, _second_before(prefix))
        if instant.seconds == self._seconds:
            self._count += count
            self._before += before
            self._head = _later(self._head, head)
            return True
        self._before = before + (self._count if self._prefix and instant.seconds == self._seconds + 1 else 0)
        self._count = count
        self._seconds, self._prefix, self._head = instant.seconds, prefix, head
        return True

    def resume(self) -> tuple[Instant | None, Repeats]:
        """The time from which to request the log (None: from its beginning), and the known lines of that time."""
        last = self.instant
        if last is None:
            return None, Repeats(self._undated)
        if last.nanoseconds >= DISORDER_NANOSECONDS:
            return Instant(last.seconds), Repeats(self._count, last.seconds, last)
        # A line of the second before may yet come.
        return Instant(last.seconds - 1), Repeats(self._before + self._count, last.seconds - 1, last)

    def _advance_by(self, head: bytes) -> None:
        prefix = head[:_SECOND_BYTES]
        if prefix and prefix == self._prefix:
            self._count += 1
            self._head = _later(self._head, head)
            return
        instant = instant_of(head)
        if instant is None:
            self._undated += 1
        elif not self._prefix or instant.seconds > self._seconds:
            self._before = self._count if instant.seconds == self._seconds + 1 else 0
            self._count = 1
            self._seconds, self._prefix, self._head = instant.seconds, prefix, head
        elif instant.seconds == self._seconds - 1:
            self._before += 1


class Repeats:
    """Recognises the lines at the beginning of a resumed stream that were read before.

    There are `count` from the second `first`, since which lines were asked for, up to that of `last`, the last line
    that was read. Without `last` no line had a timestamp, and all were counted.
    """

    __slots__ = ("_count", "_first", "_has_begun", "_last")

    def __init__(self, count: int, first: int = 0, last: Instant | None = None) -> None:
        self._has_begun = False
        self._count = count
        self._first = first
        self._last = last

    @property
    def are_over(self) -> bool:
        """Whether all further lines are new."""
        return not self._count

    def include(self, line: bytes) -> bool:
        """Whether the next line of the stream is a repeated one."""
        if not self._count:
            return False
        last = self._last
        if last is None:
            self._count -= 1
            return True
        begins, self._has_begun = not self._has_begun, True
        instant = instant_of(line)
        if instant is None:  # the end of a progress bar, which began before the second that was asked for
            return begins and b"\r" in line
        later = (instant.seconds - last.seconds) * 1_000_000_000 + instant.nanoseconds - last.nanoseconds
        if later > DISORDER_NANOSECONDS:
            self._count = 0
            return False
        # What is earlier than it was asked for, or out of order over the end of a second, is not among the counted.
        self._count -= self._first <= instant.seconds <= last.seconds
        return True

    def without(self, block: bytes) -> bytes:
        """The new lines of a block of whole lines."""
        if not self._count:
            return block
        new: list[bytes] = []
        start = 0
        while start < len(block) and self._count:
            end = block.index(b"\n", start) + 1
            line = block[start:end]
            if not self.include(line):
                new.append(line)
            start = end
        return b"".join((*new, block[start:]))


def _count(block: bytes, prefix: bytes) -> int:
    """How many lines begin so."""
    return block.startswith(prefix) + block.count(b"\n" + prefix)


def _second_before(prefix: bytes) -> bytes:
    """The timestamp of one second before, in the same spelling and zone."""
    return (datetime.fromisoformat(prefix.decode()) - _SECOND).isoformat().encode()


def _later(head: bytes, other: bytes) -> bytes:
    """The later of two lines of the same second, if both have timestamps."""
    if head.find(b" ") == other.find(b" "):  # with as many digits, text and time sort alike
        return max(head, other)
    instant, other_instant = instant_of(head), instant_of(other)
    if instant is None or other_instant is None:
        return other if instant is None else head
    return max((instant, head), (other_instant, other))[1]
