"""The progress of a training and of its steps from their logs, ahead of the status of the TrainJob."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.api.progress import monitoring_enabled
from trainer.api.trainjob_status import STEP_FIELDS, StepState
from trainer.cli.jobs.progress import NOTHING_REPORTED, StepProgress, TrainingProgress
from trainer.kube.objects import annotations_of
from trainer.progress.containers import PrimaryContainer
from trainer.progress.message_reader import MessageReader
from trainer.progress.primary_pod import state_of
from trainer.progress.run import TrainingRun
from trainer.workloads.containers import containers_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainer.kube.client import Client
    from trainer.kube.objects import Object
    from trainer.kube.podlogs.instant import Instant
    from trainer.progress.containers import StartedContainer
    from trainer.progress.primary_pod import ContainerState
    from trainer.progress.protocol import RejectedMessageError


class LoggedProgress:
    """Reads the same messages from the logs of one TrainJob as the manager, and merges them in the same way."""

    def __init__(self, client: Client, job: Object) -> None:
        self.primary = PrimaryContainer(client, job)
        self._job = job
        self._state: ContainerState | None = None
        self._began: tuple[str, Instant | None] | None = None
        self._run = TrainingRun()
        self._reader = MessageReader(_left_to_the_manager)
        self.latest = NOTHING_REPORTED
        """The last reported progress."""
        self.is_monitored = True
        """Whether the annotations of TrainJob and JobSet allow to read the logs."""

    async def see_pods(self, pods: Sequence[Object]) -> None:
        """Find the primary container among the present pods."""
        if not pods:
            return
        self.is_monitored = await self._may_be_read(pods)
        self._state = await self.primary.find(pods) or self._state if self.is_monitored else None

    def see_job(self, job: Object) -> None:
        """Take the TrainJob, whose annotations say whether its log is read."""
        self._job = job

    def take(self, container: StartedContainer, block: bytes) -> bool:
        """Read lines of a container's log; returns whether they report progress."""
        state = self._state
        if state is None or state.place != (container.pod_uid, container.container):
            return False
        has_news = False
        for message, time in self._reader.read(block):
            if not message.is_all_dropped:
                self._detect_new_run(state, time)
            self._run.take(message, time)
            has_news = True
        if has_news:
            self.latest = TrainingProgress.of(self._run.status)
        return has_news

    async def _may_be_read(self, pods: Sequence[Object]) -> bool:
        """What the annotations of TrainJob and JobSet, which has those of the runtime, say."""
        return monitoring_enabled(annotations_of(self._job)) and monitoring_enabled(
            annotations_of(await self.primary.jobset_of(pods))
        )

    def _detect_new_run(self, state: ContainerState, time: Instant) -> None:
        """A restarted container begins a new run with its first message."""
        began = (state.pod_uid, state.started)
        if began != self._began and (state.started is None or time >= state.started):
            self._began = began
            self._run = TrainingRun()
            self._reader.restart()


class LoggedSteps:
    """Reads what initializers and exporter report in their logs, and how they end from their pods."""

    def __init__(self) -> None:
        self._states: dict[str, ContainerState] = {}
        self._runs: dict[str, TrainingRun] = {}
        self._readers: dict[str, MessageReader] = {}

    @property
    def steps(self) -> tuple[StepProgress, ...]:
        """The steps that have started, in the order in which they run."""
        started = [(name, state) for name in STEP_FIELDS if (state := self._states.get(name)) and state.started]
        return tuple(StepProgress(name, _word(state), self._progress_of(name)) for name, state in started)

    def see_pod(self, pod: Object) -> None:
        """Take a pod when it is first seen and when it has changed."""
        for name in STEP_FIELDS.keys() & containers_of(pod):
            state, before = state_of(pod, name), self._states.get(name)
            self._states[name] = state
            if before is None or before.place != state.place:
                self._runs[name], self._readers[name] = TrainingRun(), MessageReader(_left_to_the_manager)

    def take(self, container: StartedContainer, block: bytes) -> bool:
        """Read lines of a container's log; returns whether they report progress."""
        state = self._states.get(container.container)
        if state is None or state.place != (container.pod_uid, container.container):
            return False
        has_news = False
        for message, time in self._readers[container.container].read(block):
            self._runs[container.container].take(message, time)
            has_news = True
        return has_news

    def _progress_of(self, name: str) -> TrainingProgress:
        return TrainingProgress.of(self._runs[name].status)


def _word(state: ContainerState) -> StepState:
    if not state.has_ended:
        return StepState.RUNNING
    return StepState.COMPLETE if state.has_succeeded else StepState.FAILED


def _left_to_the_manager(_: RejectedMessageError) -> None:
    """The manager reports it in an event."""
