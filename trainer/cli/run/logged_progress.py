"""The progress of a training and of its steps from their logs, ahead of the status of the TrainJob."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trainer.api.progress import monitoring_enabled, plain_lines_enabled
from trainer.api.trainjob_status import STEP_FIELDS
from trainer.kube.client import Client
from trainer.kube.objects import Object, annotations_of
from trainer.kube.podlogs.instant import Instant
from trainer.progress.containers import StartedContainer
from trainer.progress.message_reader import TimedMessage
from trainer.progress.primary import ContainerState, PrimaryContainer, state_of
from trainer.progress.reports import Reports
from trainer.view.progress import NOTHING_REPORTED, StepProgress, TrainingProgress
from trainer.workloads.containers import containers_of


class LoggedProgress:
    """Reads the same messages from the logs of one TrainJob as the manager, and merges them in the same way."""

    def __init__(self, client: Client, job: Object) -> None:
        self.primary = PrimaryContainer(client, job)
        self._job = job
        self._training: Reports | None = None
        self._steps: dict[str, Reports] = {}
        self.is_monitored = True
        """Whether the annotations of TrainJob and JobSet allow to read the logs."""
        self.latest = NOTHING_REPORTED
        """The last reported progress of the training."""

    @property
    def steps(self) -> tuple[StepProgress, ...]:
        """The initializers and the exporter that have started, in the order in which they run."""
        started = [(name, self._steps[name]) for name in STEP_FIELDS if name in self._steps]
        return tuple(
            StepProgress(name, reports.state.as_step, TrainingProgress.of(reports.status))
            for name, reports in started
            if reports.state.started
        )

    def see_job(self, job: Object) -> None:
        """Take the TrainJob, whose annotations say whether its log is read."""
        self._job = job

    def see_pod(self, pod: Object) -> None:
        """Take a pod, which may have a step, when it is first seen and when it has changed."""
        for name in STEP_FIELDS.keys() & containers_of(pod):
            self._steps[name] = _observed(self._steps.get(name), state_of(pod, name))

    async def see_pods(self, pods: Sequence[Object]) -> None:
        """Find the primary container among the present pods."""
        if not pods:
            return
        owners = self._job, await self.primary.jobset_of(pods)  # the JobSet has the annotations of the runtime
        self.is_monitored = all(monitoring_enabled(annotations_of(owner)) for owner in owners)
        with_plain_lines = all(plain_lines_enabled(annotations_of(owner)) for owner in owners)
        if (state := await self.primary.find(pods)) is not None:
            self._training = _observed(self._training, state, with_plain_lines=with_plain_lines)

    def take(self, container: StartedContainer, block: bytes) -> bool:
        """Read lines of a container's log; returns whether they report progress."""
        if not self.is_monitored:
            return False
        training = self._training
        if training is not None and training.state.place == container.place:
            return self._show(training, training.read(block))
        step = self._steps.get(container.container)
        return step is not None and step.state.place == container.place and bool([*step.read(block)])

    def take_state(self, container: StartedContainer, line: bytes, now: Instant) -> bool:
        """Likewise of the last state of a line that is written over, such as a progress bar."""
        training = self._training
        if not self.is_monitored or training is None or training.state.place != container.place:
            return False
        return self._show(training, training.read_state(line, now))

    def _show(self, training: Reports, messages: Iterable[TimedMessage]) -> bool:
        has_news = bool([*messages])
        if has_news:
            self.latest = TrainingProgress.of(training.status)
        return has_news


def _observed(reports: Reports | None, state: ContainerState, *, with_plain_lines: bool = False) -> Reports:
    """The reports of a container in its present state; another container begins anew."""
    if reports is None or reports.state.place != state.place:
        return Reports(state, with_plain_lines=with_plain_lines)
    reports.observe(state)
    return reports
