"""Progress from the log of a TrainJob's primary container, earlier than in its status."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.api.progress import monitoring_enabled
from trainer.cli.jobs.progress import NOTHING_REPORTED, TrainingProgress
from trainer.cli.logs.containers import PrimaryContainer
from trainer.kube.objects import annotations_of
from trainer.progress.protocol import RejectedMessageError, parse, tagged_lines
from trainer.progress.run import TrainingRun

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainer.cli.logs.containers import StartedContainer
    from trainer.kube.client import Client
    from trainer.kube.objects import Object
    from trainer.kube.podlogs.instant import Instant
    from trainer.progress.primary_pod import ContainerState


class LoggedProgress:
    """Reads the same messages from the logs of one TrainJob as the manager, and merges them in the same way."""

    def __init__(self, client: Client, job: Object) -> None:
        self.primary = PrimaryContainer(client, job)
        self._job = job
        self._state: ContainerState | None = None
        self._began: tuple[str, Instant | None] | None = None
        self._run = TrainingRun()
        self.latest = NOTHING_REPORTED
        """The last reported progress."""

    async def see_pods(self, pods: Sequence[Object]) -> None:
        """Find the primary container among the present pods."""
        if pods and await self._is_monitored(pods):
            self._state = await self.primary.find(pods) or self._state
        elif pods:
            self._state = None

    def see_job(self, job: Object) -> None:
        """Take the TrainJob, whose annotations say whether its log is read."""
        self._job = job

    def take(self, container: StartedContainer, block: bytes) -> bool:
        """Read lines of a container's log; returns whether they report progress."""
        state = self._state
        if state is None or state.place != (container.pod_uid, container.container):
            return False
        has_news = False
        for line in tagged_lines(block):
            try:
                message = parse(line.payload)
            except RejectedMessageError:  # the manager reports it in an event
                continue
            self._detect_new_run(state, line.time)
            self._run.take(message, line.time)
            has_news = True
        if has_news:
            self.latest = TrainingProgress.of(self._run.status)
        return has_news

    async def _is_monitored(self, pods: Sequence[Object]) -> bool:
        """Whether the annotations of TrainJob and JobSet, which has those of the runtime, allow it."""
        return monitoring_enabled(annotations_of(self._job)) and monitoring_enabled(
            annotations_of(await self.primary.jobset_of(pods))
        )

    def _detect_new_run(self, state: ContainerState, time: Instant) -> None:
        """A restarted container begins a new run with its first message."""
        began = (state.pod_uid, state.started)
        if began != self._began and (state.started is None or time >= state.started):
            self._began = began
            self._run = TrainingRun()
