"""The metrics of a TrainJob, read from the log of its primary container while somebody looks at them."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio
import structlog

from trainer.dashboard.curves import Curves
from trainer.dashboard.event_stream import Changes
from trainer.kube.errors import KubeError
from trainer.kube.objects import uid_of
from trainer.kube.podlogs.container_log import ContainerLog, ContainerLogOptions
from trainer.progress.containers import PrimaryContainer, started_containers
from trainer.workloads.containers import has_ended

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from anyio.abc import TaskGroup

    from trainer.kube.client import Client
    from trainer.kube.clock import Clock
    from trainer.kube.objects import Object
    from trainer.progress.containers import StartedContainer

log = structlog.get_logger(__name__)

LINE_LIMIT = 256 * 1024
"""Bytes of a line that is read; messages about progress are shorter."""
IDLE_SECONDS = 300.0
"""Silence after which a log is asked for anew, since a proxy may have dropped the connection."""
_RETRY = 5.0
"""Seconds after which what was refused is asked for again: rights and credentials change."""


class MetricFeed:
    """Follows the log of the primary container of one TrainJob, across pods that are made again.

    Where the log may not be read, there are no curves, and `problem` says why.
    """

    def __init__(self, client: Client, job: Object, clock: Clock) -> None:
        self.curves = Curves()
        self.listeners: set[Changes] = set()
        self._client = client
        self._clock = clock
        self._primary = PrimaryContainer(client, job)
        self._pods: Sequence[Object] = ()
        self._seen = Changes()
        self._not_found = self._not_read = ""

    @property
    def problem(self) -> str:
        """Why there are no metrics, or no more of them; empty while they come."""
        return self._not_found or self._not_read

    def see(self, pods: Sequence[Object]) -> None:
        """Take the present pods of the TrainJob."""
        self._pods = pods
        self._seen.notify()

    async def run(self) -> None:
        """Follow until cancelled; what goes wrong ends this feed alone."""
        try:
            await self._run()
        except Exception:
            log.exception("could not follow metrics")
            self._not_read = "the output of `trainer dashboard` says why"
            self._tell()

    async def _run(self) -> None:
        container = await self._next(None)
        while True:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._follow, container)
                container = await self._next(container)
                tasks.cancel_scope.cancel()
            self.curves.restart()

    async def _next(self, followed: StartedContainer | None) -> StartedContainer:
        """The primary container, once it is another one than that which is followed."""
        while True:
            await self._seen.wait()
            try:
                state = await self._primary.find(self._pods)
            except KubeError as error:
                self._not_found = str(error)
                self._tell()
                await self._clock.sleep(_RETRY)
                self._seen.notify()
                continue
            self._not_found = ""
            for started in (each for pod in self._pods for each in started_containers(pod)):
                if state is not None and started != followed and (started.pod_uid, started.container) == state.place:
                    return started

    async def _follow(self, container: StartedContainer) -> None:
        def is_finished() -> bool:
            pod = next((pod for pod in self._pods if uid_of(pod) == container.pod_uid), None)
            return pod is None or has_ended(pod, container.container)

        place = container.namespace, container.pod, container.container
        options = ContainerLogOptions(line_limit=LINE_LIMIT, idle_timeout=IDLE_SECONDS)
        reader = ContainerLog(self._client, *place, clock=self._clock, options=options)
        while True:
            try:
                await reader.follow(self._take, is_finished=is_finished)
            except KubeError as error:
                self._not_read = str(error)
                self._tell()
                await self._clock.sleep(_RETRY)
            else:
                self._not_read = ""
                return

    def _take(self, block: bytes) -> None:
        was_not_read, self._not_read = self._not_read, ""
        if self.curves.take(block) or was_not_read:
            self._tell()

    def _tell(self) -> None:
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
