"""Turns on the event loop for work that many are ready to do at once."""

from __future__ import annotations

import asyncio
from collections import deque


class FairScheduler:
    """Lets a few callers go on in each round of the event loop, first come first served.

    Otherwise everybody whose time has come would run in the same round, and a request or a timer that is due would wait
    for all of them.
    """

    def __init__(self, *, per_round: int) -> None:
        self._per_round = per_round
        self._left = per_round
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_scheduled = False

    async def next_turn(self) -> None:
        """Wait for a turn; returns at once when there is one left in this round."""
        loop = asyncio.get_running_loop()
        if not self._is_scheduled:
            self._is_scheduled = True
            loop.call_soon(self._next_round, loop)
        if self._left and not self._waiting:
            self._left -= 1
            return
        turn = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _next_round(self, loop: asyncio.AbstractEventLoop) -> None:
        self._left = self._per_round
        while self._waiting and self._left:
            turn = self._waiting.popleft()
            # A cancelled caller has left.
            if not turn.done():
                turn.set_result(None)
                self._left -= 1
        self._is_scheduled = bool(self._waiting) or self._left < self._per_round
        if self._is_scheduled:
            loop.call_soon(self._next_round, loop)
