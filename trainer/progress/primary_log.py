"""The log of the primary container of a TrainJob, followed across pods that are made again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from trainer.kube.barrier import Barrier
from trainer.kube.errors import KubeError
from trainer.kube.objects import key_of, uid_of
from trainer.kube.podlogs.container_log import ContainerLog, ContainerLogOptions
from trainer.kube.podlogs.position import Position
from trainer.progress.containers import PrimaryContainer, started_containers
from trainer.workloads.containers import has_ended

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainer.kube.client import Client
    from trainer.kube.clock import Clock
    from trainer.kube.objects import Object
    from trainer.progress.containers import StartedContainer

_FOLLOWING = Barrier("could not follow log")

LINE_LIMIT = 256 * 1024
"""Bytes of a line that is read; messages about progress are shorter."""
IDLE_SECONDS = 300.0
"""Silence after which a log is asked for anew, since a proxy may have dropped the connection."""
_RETRY = 5.0
"""Seconds after which what was refused is asked for again: rights and credentials change."""


class PrimaryLogReader:
    """Takes what a `PrimaryLog` reads; called on the event loop, so it must not block."""

    def begin(self, container: StartedContainer) -> Position:  # noqa: ARG002
        """Another container is read from now on. Returns where to go on in its log, which moves on with the reading."""
        return Position()

    def take(self, block: bytes) -> None:
        """Take whole lines, see `ContainerLog`."""

    def end(self) -> None:
        """The container has ended for good and all of its log is read, or its pod is gone."""

    def hinder(self) -> None:
        """The `problem` has changed."""


class PrimaryLog:
    """Follows the log of the primary container of one TrainJob.

    Args:
        client: reads the log, and the JobSet by which the container is found.
        job: the TrainJob.
        clock: for pauses.
        reader: takes what is read.
        pace: seconds between two reads, see `LogOptions.pace`. Default: 0, lines come as they are written.
    """

    def __init__(self, client: Client, job: Object, clock: Clock, reader: PrimaryLogReader, *, pace: float = 0) -> None:
        self._client = client
        self._key = key_of(job)
        self._clock = clock
        self._reader = reader
        self._options = ContainerLogOptions(line_limit=LINE_LIMIT, idle_timeout=IDLE_SECONDS, pace=pace)
        self._primary = PrimaryContainer(client, job)
        self._pods: Sequence[Object] = ()
        self._seen = anyio.Event()
        self._not_found = self._not_read = ""

    @property
    def problem(self) -> str:
        """Why the log is not read; empty while it is."""
        return self._not_found or self._not_read

    def see(self, pods: Sequence[Object]) -> None:
        """Take the present pods of the TrainJob."""
        self._pods = pods
        self._seen.set()

    async def run(self) -> None:
        """Follow until cancelled, after which it may be called again; what goes wrong ends this log alone."""
        if self._pods:
            self._seen.set()  # they were taken by the call before
        with _FOLLOWING.around(self._key) as attempt:
            await self._run()
        if attempt.error is not None:
            self._not_read = "the output of the program says why"
            self._reader.hinder()

    async def _run(self) -> None:
        container = await self._next(None)
        while True:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._follow, container)
                container = await self._next(container)
                tasks.cancel_scope.cancel()

    async def _next(self, followed: StartedContainer | None) -> StartedContainer:
        """The primary container, once it is another one than that which is followed."""
        while True:
            await self._seen.wait()
            self._seen = anyio.Event()
            try:
                state = await self._primary.find(self._pods)
            except KubeError as error:
                self._not_found = str(error)
                self._reader.hinder()
                await self._clock.sleep(_RETRY)
                self._seen.set()
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
        position = self._reader.begin(container)
        source = ContainerLog(self._client, *place, clock=self._clock, options=self._options, position=position)
        while True:
            try:
                await source.follow(self._take, is_finished=is_finished)
            except KubeError as error:
                self._not_read = str(error)
                self._reader.hinder()
                await self._clock.sleep(_RETRY)
            else:
                self._not_read = ""
                self._reader.end()
                return

    def _take(self, block: bytes) -> None:
        if self._not_read:
            self._not_read = ""
            self._reader.hinder()
        self._reader.take(block)
