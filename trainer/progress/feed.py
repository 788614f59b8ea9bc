"""The log of the primary container of a TrainJob, followed across pods that are made again."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing

import anyio

from trainer.kube.barrier import Barrier
from trainer.kube.client import Client
from trainer.kube.clock import Clock
from trainer.kube.errors import KubeError
from trainer.kube.objects import Object, key_of
from trainer.kube.podlogs.container_log import ContainerLog, ContainerLogOptions, Interrupted, Interruption
from trainer.kube.podlogs.position import Position
from trainer.progress.containers import StartedContainer
from trainer.progress.primary import PrimaryContainer
from trainer.progress.protocol import LINE_LIMIT

_FOLLOWING = Barrier("could not follow log")

_RETRY = 5.0
"""Seconds after which the JobSet is asked for again: rights and credentials change."""


class FeedReader:
    """Takes the events of a `Feed`; called on the event loop, so it must not block."""

    def on_start(self, container: StartedContainer) -> Position:  # noqa: ARG002
        """Another container is read from now on. Returns where to go on in its log, which moves on with the reading."""
        return Position()

    def on_lines(self, block: bytes) -> None:
        """Whole lines were read, see `ContainerLog`."""

    def on_end(self) -> None:
        """The container has ended for good and all of its log is read, or its pod is gone."""

    def on_problem_changed(self) -> None:
        """The `problem` has changed."""


class Feed:
    """Follows the log of the primary container of one TrainJob.

    Args:
        client: reads the log, and the JobSet by which the container is found.
        job: the TrainJob.
        clock: for pauses.
        reader: takes what is read.
        pace: seconds between two reads, see `LogOptions.pace`. Default: 0, lines come as they are written.
    """

    def __init__(self, client: Client, job: Object, clock: Clock, reader: FeedReader, *, pace: float = 0) -> None:
        self._client = client
        self._key = key_of(job)
        self._clock = clock
        self._reader = reader
        self._options = ContainerLogOptions(line_limit=LINE_LIMIT, pace=pace)
        self._primary = PrimaryContainer(client, job)
        self._pods: Sequence[Object] = ()
        self._changed = anyio.Event()
        self._not_found = self._not_read = ""

    @property
    def problem(self) -> str:
        """Why the log is not read; empty while it is."""
        return self._not_found or self._not_read

    def observe(self, pods: Sequence[Object]) -> None:
        """Take the present pods of the TrainJob."""
        self._pods = pods
        self._changed.set()

    async def run(self) -> None:
        """Follow until cancelled, after which it may be called again; what goes wrong ends this log alone."""
        if self._pods:
            self._changed.set()  # they were taken by the call before
        with _FOLLOWING.around(self._key) as attempt:
            await self._run()
        if attempt.error is not None:
            self._report("the output of the program says why")

    async def _run(self) -> None:
        container = await self._next(None)
        while True:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._follow, container)
                container = await self._next(container)
                tasks.cancel_scope.cancel()

    async def _next(self, followed: StartedContainer | None) -> StartedContainer:
        """Wait until the primary container changes, and return it."""
        while True:
            await self._changed.wait()
            self._changed = anyio.Event()
            try:
                container = await self._primary.started(self._pods)
            except KubeError as error:
                self._not_found = str(error)
                self._reader.on_problem_changed()
                await self._clock.sleep(_RETRY)
                self._changed.set()
                continue
            self._not_found = ""
            if container not in {None, followed}:
                return container

    async def _follow(self, container: StartedContainer) -> None:
        place = container.namespace, container.pod, container.container
        position = self._reader.on_start(container)
        source = ContainerLog(self._client, *place, clock=self._clock, options=self._options, position=position)
        async with aclosing(source.follow(lambda: container.is_over(self._pods))) as events:
            async for event in events:
                if not isinstance(event, Interrupted):
                    self._report("")
                    self._reader.on_lines(event)
                elif event.reason is Interruption.REFUSED:
                    self._report(event.problem)
                del event  # not kept while nothing comes
        self._not_read = ""
        self._reader.on_end()

    def _report(self, problem: str) -> None:
        if problem != self._not_read:
            self._not_read = problem
            self._reader.on_problem_changed()
