"""Progress as the log of a TrainJob's primary container tells it, sooner than its status does."""

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
    """Picks the messages from the logs of one TrainJob that the manager would pick, and merges them as it does."""

    def __init__(self, client: Client, job: Object) -> None:
        self.primary = PrimaryContainer(client, job)
        """Knows what the pods are for."""
        self._job = job
        self._state: ContainerState | None = None
        self._began: tuple[str, Instant | None] | None = None
        self._run = TrainingRun()
        self.latest = NOTHING_REPORTED
        """What was reported last."""

    async def see_pods(self, pods: Sequence[Object]) -> None:
        """Find the primary container among the pods that there are now."""
        if pods and await self._is_monitored(pods):
            self._state = await self.primary.find(pods) or self._state
        elif pods:
            self._state = None

    def see_job(self, job: Object) -> None:
        """Take note of the TrainJob, which says whether its log is to be read."""
        self._job = job

    def take(self, container: StartedContainer, block: bytes) -> bool:
        """Read some lines of a container's log; whether they tell of progress."""
        state = self._state
        if state is None or state.place != (container.pod_uid, container.container):
            return False
        has_news = False
        for line in tagged_lines(block):
            try:
                message = parse(line.payload)
            except RejectedMessageError:  # the manager tells in an event
                continue
            self._turn_to_new_run(state, line.time)
            self._run.take(message, line.time)
            has_news = True
        if has_news:
            self.latest = TrainingProgress.of(self._run.status)
        return has_news

    async def _is_monitored(self, pods: Sequence[Object]) -> bool:
        """Whether TrainJob and JobSet, which has the annotations of the runtime, allow it."""
        return monitoring_enabled(annotations_of(self._job)) and monitoring_enabled(
            annotations_of(await self.primary.jobset_of(pods))
        )

    def _turn_to_new_run(self, state: ContainerState, time: Instant) -> None:
        """A container that was started again begins anew, once it says something."""
        began = (state.pod_uid, state.started)
        if began != self._began and (state.started is None or time >= state.started):
            self._began = began
            self._run = TrainingRun()
