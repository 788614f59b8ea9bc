"""When a container, or all containers of a pod, have to end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from trainer.kube.clock import move_on_after

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trainer.kube.clock import Clock


class Termination:
    """An end: first a request, then, after the grace period, the order."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._deadline = float("inf")
        self._shortened = anyio.Event()
        self.requested = anyio.Event()
        """Programs get SIGTERM, and nothing is started any more."""
        self.overdue = anyio.Event()
        """The grace period is over: programs get SIGKILL."""
        self.at_once = anyio.Event()
        """There is no grace at all, not even for programs that have only just got SIGTERM."""

    @property
    def remaining(self) -> float:
        """Seconds of the grace period that are left; infinite before the request."""
        return max(self._deadline - self._clock.monotonic(), 0.0)

    def request(self, grace: float) -> None:
        """End within so many seconds; a later request can only shorten what an earlier one granted."""
        self._deadline = min(self._deadline, self._clock.monotonic() + grace)
        self._shortened.set()
        self.requested.set()
        if grace <= 0:
            self.overdue.set()
            self.at_once.set()

    async def enforce(self) -> None:
        """Turn the request into the order when the grace period is over."""
        await self.requested.wait()
        while self.remaining > 0:
            self._shortened = anyio.Event()
            async with move_on_after(self._clock, self.remaining):
                await self._shortened.wait()
        self.overdue.set()

    async def pause(self, seconds: float) -> None:
        """Wait so long, or until termination is requested."""
        async with move_on_after(self._clock, seconds):
            await self.requested.wait()

    async def unless_requested(self, event: anyio.Event) -> bool:
        """Wait for an event; False if termination was requested before."""
        await _until(self.requested, event.wait)
        return event.is_set()

    async def within_grace(self, work: Callable[[], Awaitable[object]]) -> None:
        """Do something that is cancelled when the grace period is over."""
        await _until(self.overdue, work)


async def _until(limit: anyio.Event, work: Callable[[], Awaitable[object]]) -> None:
    async with anyio.create_task_group() as tasks:

        async def cancel() -> None:
            await limit.wait()
            tasks.cancel_scope.cancel()

        tasks.start_soon(cancel)
        await work()
        tasks.cancel_scope.cancel()
