"""Supervisor: starts groups of runnables in order, stops them in order, and stops all when one fails.

Cancelling `run` is the normal way to stop. The groups must not feel that cancellation themselves, or they would all end
at once: they live in a shielded scope of their own, and the cancellation only begins the orderly stop. It takes as long
as the grace period allows; then everything is cancelled.
"""

from __future__ import annotations

import asyncio
from enum import Enum

import anyio

from trainer.kube.clock import Clock, move_on_after
from trainer.kube.errors import LeadershipLostError, ShutdownError
from trainer.kube.logger import get_logger
from trainer.kube.manager.runnable_group import Run, Runnable, RunnableGroup, sole_failure

log = get_logger(__name__)

EVENT_TIMEOUT = 5.0
"""Seconds that the events recorded until the very end have to be written, beyond the grace period."""


class Group(Enum):
    """The groups of runnables, in the order in which a manager starts them; each waits for the one before it."""

    EVENTS = "events"
    """Senders of events."""
    HTTP_SERVERS = "HTTP servers"
    """Probes and metrics, and what watches the process: all that must work while the others start and stop."""
    WEBHOOKS = "webhooks"
    """Before the caches, which may need a conversion webhook to be able to list."""
    CACHES = "caches"
    """Informers; what comes after them finds them synced."""
    OTHERS = "others"
    """Runnables that need no leadership."""
    LEASE = "lease"
    """The leader election itself, which has started when this process has become the leader."""
    LEADER_ELECTION = "leader election"
    """Controllers, and all else that writes."""


GRACEFUL = (Group.OTHERS, Group.LEADER_ELECTION, Group.CACHES, Group.WEBHOOKS, Group.HTTP_SERVERS)
"""Groups in the order in which they are stopped, each when the one before it has ended.

As in controller-runtime. The lease follows, which must not be released while anything could write, and the events last.
"""


class Supervisor:
    """Runs the groups.

    Args:
        clock: measures the grace period.
        grace: seconds that runnables have to end; None or less than 0: forever, 0: they are cancelled at once.
    """

    def __init__(self, clock: Clock, grace: float | None) -> None:
        self._clock = clock
        self._grace = grace
        self._groups = {group: RunnableGroup(self._fail) for group in Group}
        self._failure: Exception | None = None
        self._ran = False
        self._stopping = anyio.Event()
        self._stop_at_once = anyio.Event()
        self._ended = anyio.Event()

    @property
    def is_stopping(self) -> bool:
        """Whether the end has begun."""
        return self._stopping.is_set()

    def add(self, group: Group, runnable: Runnable) -> None:
        """Run this in its group; at once if the group has been started.

        Raises:
            RuntimeError: the stop has begun.
        """
        if self.is_stopping:
            raise RuntimeError(f"{runnable.name} cannot be added: everything is being stopped")
        self._groups[group].add(runnable)

    async def start(self, group: Group) -> None:
        """Start what has been added to a group, and wait until it does its work."""
        await self._groups[group].start()

    def stop(self) -> None:
        """Begin the orderly stop; called again, cancel what still runs."""
        if self._stopping.is_set():
            self._stop_at_once.set()
        self._stopping.set()

    async def run(self, start: Run) -> None:
        """Call `start`, which starts the groups, and run until cancelled, stopped or failed; then stop in order.

        Raises:
            ShutdownError: something did not end within the grace period.
            Exception: the first failure of `start` or a runnable; of later ones the log tells.
            RuntimeError: it has been called before.
        """
        if self._ran:
            raise RuntimeError("a manager runs once")
        self._ran = True
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._supervise, start)
                await self._wait_for_end()
        except asyncio.CancelledError:
            if self._failure is None:
                raise
        if self._failure is not None:
            raise self._failure

    async def _wait_for_end(self) -> None:
        try:
            await self._ended.wait()
        except asyncio.CancelledError:
            self.stop()
            with anyio.CancelScope(shield=True):
                while not self._ended.is_set():
                    try:
                        await self._ended.wait()
                    except asyncio.CancelledError:
                        # Through the shield comes only a second `Task.cancel`, which must not leave tasks behind.
                        self.stop()
            raise

    async def _supervise(self, start: Run) -> None:
        try:
            with anyio.CancelScope(shield=True):
                async with anyio.create_task_group() as tasks:
                    for group in self._groups.values():
                        await tasks.start(group.own_tasks)
                    await self._run_until_stopped(start)
                    await self._stop_groups()
        finally:
            self._ended.set()

    async def _run_until_stopped(self, start: Run) -> None:
        async def guarded_start() -> None:
            try:
                await start()
            except Exception as error:
                self._fail("manager", sole_failure(error))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(guarded_start)
            await self._stopping.wait()
            tasks.cancel_scope.cancel()

    async def _stop_groups(self) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._limit_grace)
            tasks.start_soon(self._cancel_at_once)
            for group in GRACEFUL:
                await self._groups[group].stop()
            tasks.cancel_scope.cancel()
        await self._groups[Group.LEASE].stop()
        events = self._groups[Group.EVENTS]
        async with move_on_after(self._clock, EVENT_TIMEOUT):
            await events.stop()
        events.cancel()
        await events.stop()
        log.info("stopped manager")

    async def _limit_grace(self) -> None:
        if self._grace is None or self._grace < 0:
            return
        await self._clock.sleep(self._grace)
        if self._grace > 0:
            names = [name for group in GRACEFUL for name in self._overdue(group)]
            log.error("failed to stop in time, cancelling", runnables=names, grace_seconds=self._grace)
            if self._failure is None:
                self._failure = ShutdownError(f"did not stop within {self._grace:g} s: {', '.join(names)}")
        self._cancel()

    def _overdue(self, group: Group) -> list[str]:
        return self._groups[group].running if self._groups[group].is_stopping else []

    async def _cancel_at_once(self) -> None:
        await self._stop_at_once.wait()
        log.info("stopping at once")
        self._cancel()

    def _cancel(self) -> None:
        for group in GRACEFUL:
            self._groups[group].cancel()

    def _fail(self, name: str, error: Exception) -> None:
        if isinstance(error, LeadershipLostError):
            # Another process may write in a moment.
            self._stop_at_once.set()
            self._failure = self._failure or error
        if self.is_stopping:
            log.error("failed while stopping", runnable=name, exc_info=error)
            return
        log.error("failed, stopping everything", runnable=name, error=str(error))
        self._failure = error
        self._stopping.set()
