"""How long the event loop was not available."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

TICK = 0.001


class LoopStalls:
    """Ticks each millisecond, or at another interval, and remembers the longest gap between two ticks.

    The wall clock includes what other processes and threads took; the processor time of the loop's thread does not, so
    it tells on a busy machine too how long a callback or a garbage collection ran.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, *, tick: float = TICK) -> None:
        self._loop = loop
        self._seconds = tick
        self.longest_seconds = 0.0
        self.longest_cpu_seconds = 0.0

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Measure while the body runs."""
        self._last, self._last_cpu = time.perf_counter(), time.thread_time()
        self._timer = self._loop.call_later(self._seconds, self._tick)
        try:
            yield
        finally:
            self._timer.cancel()

    def _tick(self) -> None:
        now, cpu = time.perf_counter(), time.thread_time()
        self.longest_seconds = max(self.longest_seconds, now - self._last - self._seconds)
        self.longest_cpu_seconds = max(self.longest_cpu_seconds, cpu - self._last_cpu)
        self._last, self._last_cpu = now, cpu
        self._timer = self._loop.call_later(self._seconds, self._tick)
