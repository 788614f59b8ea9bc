"""Following the logs of one TrainJob's containers to its end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import anyio
from anyio.abc import TaskGroup

from trainer.api.jobset_labels import JOBSET_NAME
from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.console import note
from trainer.cli.jobs.receiver import Receiver, report_errors, watch_for
from trainer.cli.jobs.state import JobState
from trainer.kube.client import Client
from trainer.kube.clock import Clock, move_on_after
from trainer.kube.errors import KubeError
from trainer.kube.objects import Object, key_of, uid_of
from trainer.kube.podlogs.container_log import ContainerLog, ContainerLogOptions, Interrupted, Interruption
from trainer.kube.resource import PODS
from trainer.kube.selection import Selection
from trainer.progress.containers import StartedContainer, started_containers

Choose: TypeAlias = Callable[[Sequence[Object]], Awaitable[Iterable[StartedContainer]]]
"""Chooses the containers to follow among the pods of the job; called again whenever a pod has changed."""

_LAST_LOGS_SECONDS = 10.0
"""How long after the end of a job to wait for the next line of its logs."""
WHOLE = ContainerLogOptions()
"""Reads a log from its beginning."""


class LogConsumer:
    """Takes the logs of one TrainJob, and the TrainJob and its pods."""

    def take(self, container: StartedContainer, block: bytes) -> None:
        """Take lines of a container's log, see `ContainerLog`."""

    def take_state(self, container: StartedContainer, line: bytes) -> None:
        """Take the last state of a line that is written over and goes on, likewise."""

    def see_job(self, job: Object) -> None:
        """Take the TrainJob, when it is first seen and when it has changed."""

    def see_pod(self, pod: Object) -> None:
        """Take a pod, likewise."""

    def warn(self, text: str) -> None:
        """Report a problem that may leave gaps in the logs. Default: a line on standard error."""
        note(text, kind="warning")


def log_of(
    container: StartedContainer,
    client: Client,
    clock: Clock,
    options: ContainerLogOptions = WHOLE,
    on_state: Callable[[bytes], None] | None = None,
) -> ContainerLog:
    """The log of a container."""
    place = container.namespace, container.pod, container.container
    return ContainerLog(client, *place, clock=clock, options=options, on_state=on_state)


async def all_containers(pods: Sequence[Object]) -> Iterable[StartedContainer]:
    """All containers of all pods that have started, init containers included."""
    return [container for pod in pods for container in started_containers(pod)]


def pods_of(job: Object) -> Selection:
    """Selects the pods of a TrainJob."""
    namespace, name = key_of(job)
    return Selection(namespace, label_selector=f"{JOBSET_NAME}={name}")


@dataclass(slots=True)
class JobLogs:
    """Follows a TrainJob and the logs of its containers, across pods that are created again, to the end of the job."""

    client: Client
    job: Object
    """The TrainJob as the server returned it."""
    clock: Clock
    consumer: LogConsumer
    choose: Choose = all_containers
    options: Callable[[StartedContainer], ContainerLogOptions] = lambda _: WHOLE
    """How the logs are read. Default: from their beginning."""
    _ended: anyio.Event = field(default_factory=anyio.Event, init=False)
    _was_deleted: bool = field(default=False, init=False)
    _changed: anyio.Event = field(default_factory=anyio.Event, init=False)
    _pods: dict[str, Object] = field(default_factory=dict, init=False)
    _streams: dict[StartedContainer, anyio.Event] = field(default_factory=dict, init=False)
    _blocks: int = field(default=0, init=False)

    async def run(self) -> bool:
        """Follow to the end; False when the job was deleted."""
        async with anyio.create_task_group() as tasks:
            namespace, name = key_of(self.job)
            by_name = Selection(namespace, field_selector=f"metadata.name={name}")
            job_receiver = Receiver(tasks, self._see_job, self._lose_job)
            pod_receiver = Receiver(tasks, self._see_pod, self._lose_pod)
            jobs = watch_for(job_receiver, self.client, TRAIN_JOBS, by_name, self.clock, known=[self.job])
            pods = watch_for(pod_receiver, self.client, PODS, pods_of(self.job), self.clock)
            for informer, watched in ((jobs, "the TrainJob"), (pods, "its pods")):
                tasks.start_soon(report_errors, informer, watched, self.consumer.warn, self.clock)
            tasks.start_soon(self._keep_choosing, tasks)
            await self._ended.wait()
            await self._read_last_logs(tasks)
            tasks.cancel_scope.cancel()
        return not self._was_deleted

    def _see_job(self, job: Object) -> None:
        if uid_of(job) != uid_of(self.job):
            self._lose_job(job)
            return
        self.consumer.see_job(job)
        if JobState.of(job).is_terminal:
            self._ended.set()

    def _lose_job(self, _job: Object) -> None:
        if not self._ended.is_set():
            self._was_deleted = True
            self._ended.set()

    def _see_pod(self, pod: Object) -> None:
        self._pods[uid_of(pod)] = pod
        self.consumer.see_pod(pod)
        self._changed.set()

    def _lose_pod(self, pod: Object) -> None:
        self._pods.pop(uid_of(pod), None)
        self._changed.set()

    async def _keep_choosing(self, tasks: TaskGroup) -> None:
        while True:
            await self._changed.wait()
            self._changed = anyio.Event()
            await self._start_streams(tasks)

    async def _start_streams(self, tasks: TaskGroup) -> None:
        for container in await self.choose(list(self._pods.values())):
            if container not in self._streams:
                self._streams[container] = anyio.Event()
                tasks.start_soon(self._stream, container)

    async def _stream(self, container: StartedContainer) -> None:
        on_state = partial(self.consumer.take_state, container)
        container_log = log_of(container, self.client, self.clock, self.options(container), on_state)
        async with aclosing(container_log.follow(lambda: container.is_over(self._pods.values()))) as events:
            async for event in events:
                if not isinstance(event, Interrupted):
                    self._blocks += 1
                    self.consumer.take(container, event)
                elif event.reason is Interruption.REFUSED:
                    self.consumer.warn(f"cannot read the log of {container.source}: {event.problem}")
                    break
        self._streams[container].set()

    async def _read_last_logs(self, tasks: TaskGroup) -> None:
        async with move_on_after(self.clock, _LAST_LOGS_SECONDS):
            try:
                pods = await self.client.list(PODS, pods_of(self.job))
            except KubeError as error:
                self.consumer.warn(f"cannot list the pods: {error}")
            else:
                for pod in pods.items:  # the job's end may be known before the watch has shown its last pods
                    self._see_pod(pod)
                await self._start_streams(tasks)
        blocks_before = -1
        while blocks_before != self._blocks and self._unfinished():
            blocks_before = self._blocks
            async with move_on_after(self.clock, _LAST_LOGS_SECONDS):
                for finished in list(self._streams.values()):
                    await finished.wait()
        for container in self._unfinished():
            self.consumer.warn(f"the end of the log of {container.source} could not be read in time")

    def _unfinished(self) -> list[StartedContainer]:
        return [container for container, finished in self._streams.items() if not finished.is_set()]
