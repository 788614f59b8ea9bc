"""A clock that tests move."""

from __future__ import annotations

import heapq
import itertools
from datetime import UTC, datetime, timedelta

import anyio
import anyio.lowlevel
import anyio.to_thread

_SETTLE_ROUNDS = 100
_THREAD_POLL = 0.0005  # seconds of the machine's clock: anyio does not announce the end of a worker thread


async def settle() -> None:
    """Let all other tasks run until they wait for something that only time or the test brings.

    It gives them a fixed number of turns of the event loop after the last worker thread of the default limiter has
    ended, so that a manual clock never moves while one still computes. It does not wait for sockets or processes.
    """
    threads = anyio.to_thread.current_default_thread_limiter()
    turns = 0
    while turns < _SETTLE_ROUNDS:
        await anyio.lowlevel.checkpoint()
        turns += 1
        if threads.borrowed_tokens:
            await anyio.sleep(_THREAD_POLL)
            turns = 0


class ManualClock:
    """A clock that stands still until the test advances it."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._elapsed = 0.0
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, anyio.Event]] = []
        self._slept = anyio.Event()

    def now(self) -> datetime:
        """The start time plus what the clock was advanced by."""
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        """Seconds that the clock was advanced by."""
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock was advanced so far."""
        if seconds <= 0:
            await anyio.lowlevel.checkpoint()
            return
        entry = (self._elapsed + seconds, next(self._order), anyio.Event())
        heapq.heappush(self._sleepers, entry)
        self._slept.set()
        self._slept = anyio.Event()
        try:
            await entry[2].wait()
        finally:
            if entry in self._sleepers:
                self._sleepers.remove(entry)
                heapq.heapify(self._sleepers)

    @property
    def sleeping(self) -> list[float]:
        """Seconds that each sleeper has still to wait, shortest first."""
        return sorted(deadline - self._elapsed for deadline, _, _ in self._sleepers)

    async def wait_for_sleepers(self, count: int = 1) -> None:
        """Wait until at least so many tasks sleep."""
        while len(self._sleepers) < count:
            await self._slept.wait()

    async def advance(self, seconds: float) -> None:
        """Move the time forward; sleepers wake in order, each at its time, and may sleep again on the way."""
        await settle()
        target = self._elapsed + seconds
        while self._sleepers and self._sleepers[0][0] <= target:
            await self._wake_next()
        self._elapsed = target
        await settle()

    async def advance_to_next(self) -> float:
        """Move the time forward to the next sleeper and let it run; returns the seconds, 0.0 when nobody sleeps."""
        await settle()
        before = self._elapsed
        if self._sleepers:
            await self._wake_next()
        return self._elapsed - before

    async def _wake_next(self) -> None:
        deadline, _, event = heapq.heappop(self._sleepers)
        self._elapsed = max(self._elapsed, deadline)
        event.set()
        await settle()
