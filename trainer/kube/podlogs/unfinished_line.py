"""The beginning of a line whose newline has not come yet; of one that is written over, the last states are enough."""

from __future__ import annotations

import re

HEAD_BYTES = 64
"""So much of a line is kept where only its beginning matters: more than the longest timestamp."""
WRITTEN_OVER_LIMIT = 64 * 1024
"""Bytes of a line with carriage returns of which all is kept, where lines have no limit."""

_STAMP = re.compile(rb"\d{4}-\d\d-\d\dT[^ ]{9,40} ")


class UnfinishedLine:
    """Puts the parts of one line together, each of them copied once.

    Carriage returns end the states of a line, such as those of a progress bar, and a terminal shows the last one. Of a
    line that is longer than the limit, its timestamp, a carriage return and the last state that is not empty are left;
    if these are longer as well, the line is too long.

    Args:
        limit: bytes of a line. None: no line is too long, and of one with carriage returns `WRITTEN_OVER_LIMIT` are
            kept, or its last two states if these are longer.
    """

    __slots__ = (
        "_begin",
        "_first",
        "_has_news",
        "_is_dropped",
        "_is_dropped_whole",
        "_limit",
        "_state",
        "is_shortened",
        "kept",
    )

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self.kept: bytes | bytearray = b""
        """All that is kept."""
        self._first = b""
        """The first bytes of a line that was shortened."""
        self._begin = 0
        """Where the state begins that goes on."""
        self._state = (0, 0)
        """Where the last state that has ended begins and ends."""
        self._has_news = False
        self._is_dropped = self._is_dropped_whole = False
        """Whether the last state is too long, and whether it has ended."""
        self.is_shortened = False
        """Whether parts of it are gone."""

    def __bool__(self) -> bool:
        return bool(self.kept)

    @property
    def head(self) -> bytes:
        """The first bytes of the line."""
        return self._first or bytes(self.kept[:HEAD_BYTES])

    def add(self, part: bytes) -> None:
        """Take what follows, without a newline."""
        if self._is_dropped:
            _, mark, behind = (b"", b"\r", part) if self._is_dropped_whole else part.partition(b"\r")
            self._is_dropped_whole = bool(mark)
            part = behind.lstrip(b"\r")
            self._is_dropped = not part
        if not part:
            return
        base = len(self.kept)
        if not base:
            self.kept = part
        elif isinstance(self.kept, bytearray):
            self.kept += part
        else:
            self.kept = bytearray().join((self.kept, part))
        end = part.rfind(b"\r")
        if end >= 0:
            written = part[:end].rstrip(b"\r")
            begin = written.rfind(b"\r") + 1
            start, stop = base + begin if begin else self._begin, base + len(written)
            if stop > start:
                self._state, self._has_news = (start, stop), True
            self._begin = base + end + 1
        if len(self.kept) > self._most:
            self._shorten()

    def take_state(self) -> bytes:
        """The timestamp, a carriage return and the last state that has ended; empty without one since the last call."""
        if not self._has_news:
            return b""
        self._has_news = False
        return self._shortened(state) if (state := self._ended) else b""

    def finish(self) -> bytes | None:
        """The line, after which nothing is added; None if it is too long."""
        is_written_over = self.is_shortened or (self._begin and len(self.kept) > self._most)
        line = self._shortened(self._goes_on or self._ended) if is_written_over else bytes(self.kept)
        return None if self._is_dropped or (self._limit is not None and len(line) > self._limit) else line

    @property
    def _most(self) -> int:
        return WRITTEN_OVER_LIMIT if self._limit is None else self._limit

    @property
    def _stamp(self) -> bytes:
        found = _STAMP.match(self.kept[:HEAD_BYTES])
        return found[0] if found is not None else b""

    @property
    def _ended(self) -> bytes | bytearray:
        """The last state that has ended and is not empty."""
        return self.kept[max(self._state[0], len(self._stamp)) : self._state[1]]

    @property
    def _goes_on(self) -> bytes | bytearray:
        return self.kept[max(self._begin, len(self._stamp)) :]

    def _shortened(self, state: bytes | bytearray) -> bytes:
        # The carriage return still says that it was written over.
        return b"".join((self._stamp, b"\r", state))

    def _shorten(self) -> None:
        """Drop all states but the last one that has ended and the one that goes on, or more if these are too long."""
        oldest = self._state[0] if self._state[1] else self._begin
        if self._limit is None and 2 * oldest < len(self.kept):  # so that long states are not copied with each part
            return
        stamp, ended, goes_on = self._stamp, self._ended, self._goes_on
        if self._limit is not None and len(stamp) + len(ended) + len(goes_on) >= self._limit:
            if len(stamp) + len(goes_on or ended) >= self._limit:
                self._is_dropped, self._is_dropped_whole, goes_on = True, not goes_on, b""
            ended = b"" if goes_on or self._is_dropped else ended
        self._first = self.head
        self.kept = bytearray().join((stamp, ended, goes_on))
        self._begin = len(stamp) + len(ended)
        self._state = (len(stamp), self._begin)
        self._has_news = self._has_news and bool(ended)
        self.is_shortened = True
