"""The metrics of a TrainJob, read from the log of its primary container while somebody looks at them."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from trainer.dashboard.curves import SAMPLES
from trainer.kube.objects import uid_of
from trainer.kube.podlogs.position import Position
from trainer.progress.curves import Curves
from trainer.progress.primary_log import PrimaryLog, PrimaryLogReader

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from anyio.abc import TaskGroup

    from trainer.dashboard.event_stream import Changes
    from trainer.kube.client import Client
    from trainer.kube.clock import Clock
    from trainer.kube.objects import Object
    from trainer.progress.containers import StartedContainer


class MetricFeed(PrimaryLogReader):
    """The curves of one TrainJob.

    Where the log may not be read, there are none, and `problem` says why.
    """

    def __init__(self, client: Client, job: Object, clock: Clock) -> None:
        self.curves = Curves(total_limit=SAMPLES)
        self.listeners: set[Changes] = set()
        self._log = PrimaryLog(client, job, clock, self)
        self._has_begun = False

    @property
    def problem(self) -> str:
        """Why there are no metrics, or no more of them; empty while they come."""
        return self._log.problem

    def see(self, pods: Sequence[Object]) -> None:
        """Take the present pods of the TrainJob."""
        self._log.see(pods)

    async def run(self) -> None:
        """Follow until cancelled; what goes wrong ends this feed alone."""
        await self._log.run()

    def begin(self, container: StartedContainer) -> Position:  # noqa: ARG002
        """See `PrimaryLogReader`."""
        if self._has_begun:
            self.curves.restart()
        self._has_begun = True
        return Position()

    def take(self, block: bytes) -> None:
        """See `PrimaryLogReader`."""
        if self.curves.take(block):
            self.hinder()

    def hinder(self) -> None:
        """See `PrimaryLogReader`."""
        for listener in self.listeners:
            listener.notify()


@dataclass(slots=True)
class MetricFeeds:
    """One feed of each TrainJob, shared by all pages about it, which runs as long as there is one."""

    client: Client
    clock: Clock
    tasks: TaskGroup
    _running: dict[str, tuple[MetricFeed, anyio.CancelScope]] = field(default_factory=dict, init=False)

    @asynccontextmanager
    async def of(self, job: Object, listener: Changes) -> AsyncIterator[MetricFeed]:
        """That of a TrainJob; the listener is notified of new samples."""
        uid = uid_of(job)
        if uid not in self._running:
            feed, scope = MetricFeed(self.client, job, self.clock), anyio.CancelScope()
            self._running[uid] = feed, scope
            self.tasks.start_soon(_run_within, scope, feed)
        feed, scope = self._running[uid]
        feed.listeners.add(listener)
        try:
            yield feed
        finally:
            feed.listeners.remove(listener)
            if not feed.listeners:
                del self._running[uid]
                scope.cancel()


async def _run_within(scope: anyio.CancelScope, feed: MetricFeed) -> None:
    with scope:
        await feed.run()
