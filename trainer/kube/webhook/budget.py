"""Budgets: how many reviews are answered at a time, how much they may weigh together, and how many of them are heavy.

Decoded JSON weighs up to forty times as much as its text, which a limit of bytes alone forgets: a few reviews of nested
lists, each of an allowed size, would take more memory than the process may have.
"""

from __future__ import annotations

import heapq
import itertools
from typing import TYPE_CHECKING

import anyio

from trainer.kube.clock import move_on_after

if TYPE_CHECKING:
    from trainer.kube.clock import Clock

LIGHT = 1 << 20
"""Bytes; decoding and checking what weighs no more takes some milliseconds. Most reviews weigh far less."""
_PER_BYTE = 2
"""The text itself, and the same as strings."""
_PER_WIDE_BYTE = 6
"""Strings with characters beyond Latin-1 take up to four bytes for each, and for a moment once more one."""
_PER_ITEM = 64
"""The place of a value in its list or mapping, and a number or a short text there."""
_PER_MEMBER = 128
"""A key with its place."""
_PER_MAPPING = 64
_PER_LIST = 96


def weight_of(body: bytes | bytearray) -> int:
    """Bytes that a JSON text takes at most, with what it is decoded to; found by counting, before anything is decoded.

    Punctuation within strings counts as well, so that text that is code or JSON seems heavier than it is.
    """
    return (
        len(body) * (_PER_BYTE if body.isascii() else _PER_WIDE_BYTE)
        + body.count(b",") * _PER_ITEM
        + body.count(b":") * _PER_MEMBER
        + body.count(b"{") * _PER_MAPPING
        + body.count(b"[") * _PER_LIST
    )


class Budget:
    """An amount that several tasks share. Those who ask for least go first: a small review never waits for a large one.

    Args:
        total: such as bytes.
        light: an amount, more than which only one task holds at a time. Default: None, any number of tasks may.
    """

    def __init__(self, total: int, *, light: int | None = None) -> None:
        self.total = total
        self._light = total if light is None else light
        self._has_heavy = False
        self.used = 0
        """What is held."""
        self._waiting: list[tuple[int, int, anyio.Event]] = []
        self._arrivals = itertools.count()

    def has_room(self, amount: int) -> bool:
        """Whether that much is there without waiting."""
        return self.used + amount <= self.total and not (self._has_heavy and self._is_heavy(amount))

    async def acquire(self, amount: int, clock: Clock, seconds: float) -> None:
        """Take that much, for `release`; wait until it is there, for at most so many seconds.

        Raises:
            TimeoutError: it was not there in time.
        """
        if self.has_room(amount):
            # Waiting tasks need more than there is, so one that fits overtakes none of them.
            self._take(amount)
            return
        async with move_on_after(clock, seconds) as limit:
            await self._wait_for(amount)
        if limit.cancelled_caught:
            raise TimeoutError

    async def _wait_for(self, amount: int) -> None:
        granted = anyio.Event()
        entry = (amount, next(self._arrivals), granted)
        heapq.heappush(self._waiting, entry)
        try:
            await granted.wait()
        except BaseException:
            if granted.is_set():
                self.release(amount)
            else:
                self._waiting.remove(entry)
                heapq.heapify(self._waiting)
            raise

    def _is_heavy(self, amount: int) -> bool:
        return amount > self._light

    def _take(self, amount: int) -> None:
        self.used += amount
        self._has_heavy |= self._is_heavy(amount)

    def release(self, amount: int) -> None:
        """Give that much back, to those who wait for it."""
        self.used -= amount
        if self._is_heavy(amount):
            self._has_heavy = False
        while self._waiting and self.has_room(self._waiting[0][0]):
            taken, _, granted = heapq.heappop(self._waiting)
            self._take(taken)
            granted.set()
