"""Following TrainJobs to their end: states, node logs and warnings, from watches to a display."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

import anyio

from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.job_state import JobState
from trainer.cli.job_warnings import JobWarnings
from trainer.cli.log_stream import ContainerLog
from trainer.cli.nodes import JOBSET_NAME, Speaker, StartedContainer, has_ended, speaker_of, started_containers
from trainer.kube.cache.informer import Informer
from trainer.kube.clock import move_on_after
from trainer.kube.errors import ApiError, KubeError
from trainer.kube.objects import ObjectKey, metadata_of, name_of, uid_of
from trainer.kube.resource import EVENTS, JOBS, PODS
from trainer.kube.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from anyio.abc import TaskGroup

    from trainer.kube.cache.cached_object import CachedObject
    from trainer.kube.client import Client
    from trainer.kube.clock import Clock
    from trainer.kube.objects import Object
    from trainer.kube.resource import Resource

_LAST_LOGS_SECONDS = 10.0
"""How long after the end of a job to wait for the next line of its logs."""
_SILENCE_SECONDS = 10.0
"""After this time without a word from a controller, the user is told where to look."""
_RESULT = re.compile(r"test \w+: ")


class Display(Protocol):
    """Where the followed jobs are shown."""

    def log(self, job: ObjectKey, node: str, text: str) -> None:
        """One line of a node's log."""

    def warning(self, job: ObjectKey, text: str) -> None:
        """Something that the user should know."""

    def state(self, job: ObjectKey, state: JobState) -> None:
        """The state of the job, possibly the same as before."""

    async def keep_fresh(self) -> None:
        """What the display does by itself while jobs are followed; cancelled at the end."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended."""

    state: JobState | None
    """None: somebody deleted the job."""
    result: str = ""
    """The line that node 0 or the launcher printed with the result (`test accuracy: ...`), else its last line."""

    @property
    def is_complete(self) -> bool:
        """Whether the job ended well."""
        return self.state is not None and self.state.is_complete


async def follow_jobs(
    client: Client, jobs: Sequence[Object], display: Display, clock: Clock
) -> Mapping[ObjectKey, Outcome]:
    """Show what happens to the jobs, as the server returned them at their submission, until all have ended."""
    outcomes: dict[ObjectKey, Outcome] = {}

    async def follow(job: Object) -> None:
        follower = _JobFollower(client, job, display, clock)
        outcomes[follower.key] = await follower.run()

    async with anyio.create_task_group() as background:
        background.start_soon(display.keep_fresh)
        async with anyio.create_task_group() as followers:
            for job in jobs:
                followers.start_soon(follow, job)
        background.cancel_scope.cancel()
    return outcomes


@dataclass(frozen=True, slots=True)
class _Receiver:
    """An informer handler that needs to know only what is there and what is gone.

    An informer logs what its handlers raise and goes on; here it ends the following, as if a task had raised it.
    """

    tasks: TaskGroup
    see: Callable[[Object], None]
    lose: Callable[[Object], None] | None = None

    def on_add(self, obj: CachedObject, *, initial: bool) -> None:  # noqa: ARG002 - a late look sees the same
        self._tell(self.see, obj)

    def on_update(self, old: CachedObject, new: CachedObject) -> None:  # noqa: ARG002
        self._tell(self.see, new)

    def on_delete(self, obj: CachedObject, *, stale: bool) -> None:  # noqa: ARG002 - gone either way
        if self.lose is not None:
            self._tell(self.lose, obj)

    def _tell(self, receive: Callable[[Object], None], obj: CachedObject) -> None:
        try:
            receive(obj.decode())
        except Exception as error:
            self.tasks.start_soon(_raise, error)


async def _raise(error: Exception) -> None:
    raise error


class _JobFollower:
    """Follows one job."""

    def __init__(self, client: Client, job: Object, display: Display, clock: Clock) -> None:
        self._client = client
        self._display = display
        self._clock = clock
        self._uid = uid_of(job)
        self.key = ObjectKey(metadata_of(job)["namespace"], name_of(job))
        self._state = JobState()
        self._ended = anyio.Event()
        self._deleted = False
        self._pods: dict[str, Object] = {}
        self._streams: dict[StartedContainer, anyio.Event] = {}
        self._warnings = JobWarnings(job, lambda text: display.warning(self.key, text))
        self._lines = 0
        self._result = ""
        self._authority = (False, Speaker.NOBODY)

    async def run(self) -> Outcome:
        namespace, name = self.key
        of_jobset = Selection(namespace, label_selector=f"{JOBSET_NAME}={name}")
        async with anyio.create_task_group() as tasks:
            see_pod = partial(self._see_pod, tasks)
            by_name = Selection(namespace, field_selector=f"metadata.name={name}")
            warnings = Selection(namespace, field_selector="type=Warning")
            self._watch(TRAIN_JOBS, by_name, _Receiver(tasks, self._see_job, self._lose_job))
            self._watch(JOBS, of_jobset, _Receiver(tasks, self._warnings.see_object))
            self._watch(PODS, of_jobset, _Receiver(tasks, see_pod, self._lose_pod))
            self._watch(EVENTS, warnings, _Receiver(tasks, self._warnings.see_event))
            tasks.start_soon(self._break_silence)
            await self._ended.wait()
            await self._read_last_logs(of_jobset, see_pod)
            tasks.cancel_scope.cancel()
        if self._deleted:
            self._display.warning(self.key, "the TrainJob was deleted")
            return Outcome(None, self._result)
        self._display.state(self.key, self._state)
        return Outcome(self._state, self._result)

    def _watch(self, resource: Resource, selection: Selection, receiver: _Receiver) -> None:
        informer = Informer(self._client, resource, selection, clock=self._clock)
        informer.add_handler(receiver)
        receiver.tasks.start_soon(informer.run)

    def _see_job(self, job: Object) -> None:
        if uid_of(job) != self._uid:
            self._lose_job(job)
            return
        self._state = JobState.of(job)
        if self._state.is_terminal:
            self._ended.set()  # shown when the logs are complete
        else:
            self._display.state(self.key, self._state)

    def _lose_job(self, _job: Object) -> None:
        if not self._ended.is_set():
            self._deleted = True
            self._ended.set()

    def _see_pod(self, tasks: TaskGroup, pod: Object) -> None:
        self._pods[uid_of(pod)] = pod
        self._warnings.see_object(pod)
        for container in started_containers(pod):
            if container not in self._streams:
                self._streams[container] = anyio.Event()
                tasks.start_soon(self._stream, container, speaker_of(pod))

    def _lose_pod(self, pod: Object) -> None:
        self._pods.pop(uid_of(pod), None)

    async def _stream(self, container: StartedContainer, speaker: Speaker) -> None:
        def emit(text: str) -> None:
            self._lines += 1
            self._display.log(self.key, container.source, text)
            self._note_result(text, speaker)

        def is_finished() -> bool:
            pod = self._pods.get(container.pod_uid)
            return pod is None or has_ended(pod, container.container)

        container_log = ContainerLog(container.namespace, container.pod, container.container)
        try:
            await container_log.follow(self._client, emit, is_finished=is_finished, clock=self._clock)
        except ApiError as error:
            self._display.warning(self.key, f"cannot read the log of {container.source}: {error}")
        finally:
            self._streams[container].set()

    def _note_result(self, text: str, speaker: Speaker) -> None:
        authority = (_RESULT.match(text) is not None, speaker)
        if speaker is not Speaker.NOBODY and text.strip() and authority >= self._authority:
            self._result, self._authority = text, authority

    async def _read_last_logs(self, selection: Selection, see_pod: Callable[[Object], None]) -> None:
        async with move_on_after(self._clock, _LAST_LOGS_SECONDS):
            try:
                pods = await self._client.list(PODS, selection)
            except KubeError as error:
                self._display.warning(self.key, f"cannot list the pods: {error}")
            else:
                for pod in pods.items:  # the job's end may be known before the watch has shown its last pods
                    see_pod(pod)
        lines_before = -1
        while lines_before != self._lines and self._unfinished():
            lines_before = self._lines
            async with move_on_after(self._clock, _LAST_LOGS_SECONDS):
                for finished in list(self._streams.values()):
                    await finished.wait()
        for container in self._unfinished():
            self._display.warning(self.key, f"the end of the log of {container.source} could not be read in time")

    def _unfinished(self) -> list[StartedContainer]:
        return [container for container, finished in self._streams.items() if not finished.is_set()]

    async def _break_silence(self) -> None:
        await self._clock.sleep(_SILENCE_SECONDS)
        if self._state.is_untouched:
            hint = "no controller has looked at the TrainJob yet: is the controller manager running? (trainer status)"
            self._display.warning(self.key, hint)
