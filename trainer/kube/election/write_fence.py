"""Write fence: lets writes through only while a right to write lasts.

What it can promise: no write is begun after the deadline, and one that runs when the fence closes is broken off. It
cannot call back a request that the network delays, nor one of a process that is paused between the look at the clock
and the first byte sent: only a server that checks the lease itself could. The time between the closing of the fence and
the moment at which another may write is there for the first case; the second is a matter of microseconds.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from trainer.kube.clock import Clock
from trainer.kube.errors import ApiError, LeadershipLostError

_SERVER_FAILED = 500
"""HTTP status from which on an answer does not say whether the write was, or will be, carried out."""


class WriteFence:
    """A fence that is open until a deadline, which may be moved; closed for good by `close`."""

    def __init__(self, clock: Clock, right: str) -> None:
        self._clock = clock
        self._right = right
        self._deadline = -math.inf
        self._closed = False
        self._running: set[anyio.CancelScope] = set()
        self._broken_off = -math.inf

    @property
    def is_open(self) -> bool:
        """Whether a write may begin now."""
        return not self._closed and self._clock.monotonic() < self._deadline

    def open_until(self, deadline: float) -> None:
        """Let writes through until this moment of the monotonic clock; does nothing after `close`."""
        self._deadline = deadline

    def close(self) -> None:
        """Let no further write through, and break off those that run."""
        self._closed = True
        for scope in self._running:
            self._broken_off = self._clock.monotonic()
            scope.cancel()

    def is_quiet_since(self, moment: float) -> bool:
        """Whether the server has said since then of each write what became of it; others may still be carried out."""
        return not self._running and self._broken_off < moment

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Run one write.

        Raises:
            LeadershipLostError: the fence is closed, or was closed while the write ran; it may have been carried out.
        """
        if not self.is_open:
            raise LeadershipLostError(f"write refused: {self._right}")
        with anyio.CancelScope() as scope:
            self._running.add(scope)
            try:
                yield
            except ApiError as error:
                if error.code >= _SERVER_FAILED:
                    self._broken_off = self._clock.monotonic()
                raise
            except BaseException:
                self._broken_off = self._clock.monotonic()
                raise
            finally:
                self._running.discard(scope)
        if scope.cancelled_caught:
            raise LeadershipLostError(f"write broken off: {self._right}")
