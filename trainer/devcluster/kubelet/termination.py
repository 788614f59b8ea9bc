"""When the containers of a pod have to end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from trainer.kube.clock import move_on_after

if TYPE_CHECKING:
    from trainer.kube.clock import Clock


class Termination:
    """The end of a pod: first a request, then, after the grace period, the order."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._grace = 0.0
        self.requested = anyio.Event()
        """Programs get SIGTERM, and nothing is started any more."""
        self.overdue = anyio.Event()
        """Programs get SIGKILL."""

    def request(self, grace: float) -> None:
        """End within so many seconds; a later request can only shorten what an earlier one granted to nothing."""
        if grace <= 0:
            self.overdue.set()
        if not self.requested.is_set():
            self._grace = grace
            self.requested.set()

    async def enforce(self) -> None:
        """Turn the request into the order when the grace period is over."""
        await self.requested.wait()
        await self._clock.sleep(self._grace)
        self.overdue.set()

    async def pause(self, seconds: float) -> None:
        """Wait so long, or until termination is requested."""
        async with move_on_after(self._clock, seconds):
            await self.requested.wait()
