"""A limit on how often something is done, such as the requests per second of one client."""

from __future__ import annotations

import anyio

from trainer.kube.clock import Clock, SystemClock


class RateLimiter:
    """Token bucket: `burst` requests at once, then `qps` per second, in the order in which they came.

    A request that is cancelled while it waits takes nothing, and the next one in line takes its place.
    """

    __slots__ = ("_burst", "_clock", "_filled_at", "_qps", "_tokens", "_turn")

    def __init__(self, qps: float, burst: int, *, clock: Clock | None = None) -> None:
        if qps <= 0 or burst < 1:
            raise ValueError(f"a rate limit needs a positive qps and a burst of at least 1, not {qps} and {burst}")
        self._qps = qps
        self._burst = burst
        self._clock = clock or SystemClock()
        self._tokens = float(burst)
        self._filled_at = self._clock.monotonic()
        self._turn: anyio.Lock | None = None
        """Made by the first who waits: limits by the thousand are for users that give up instead."""

    async def wait(self) -> float:
        """Wait for a token and take it; returns the seconds that this took."""
        began = self._clock.monotonic()
        self._turn = self._turn or anyio.Lock()
        async with self._turn:
            self._fill()
            while self._tokens < 1:
                await self._clock.sleep((1 - self._tokens) / self._qps)
                self._fill()
            self._tokens -= 1
        return self._clock.monotonic() - began

    def take(self) -> bool:
        """Take a token if there is one now; for users that give up instead of waiting in line."""
        self._fill()
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def _fill(self) -> None:
        now = self._clock.monotonic()
        # Rounding errors must not leave the first in line a hair short of its token.
        self._tokens = min(round(self._tokens + (now - self._filled_at) * self._qps, 9), self._burst)
        self._filled_at = now
