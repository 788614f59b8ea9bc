"""Following TrainJobs to their end: states, node logs and warnings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import anyio

from trainer.api.jobset_labels import JOBSET_NAME
from trainer.api.trainjob_status import State
from trainer.cli.jobs.receiver import Receiver, report_errors, watch_for
from trainer.cli.jobs.state import JobState
from trainer.cli.logs.follower import WHOLE, JobLogs, LogConsumer, all_containers
from trainer.cli.run.display import JobDisplay
from trainer.cli.run.job_warnings import JobWarnings
from trainer.cli.run.logged_progress import LoggedProgress
from trainer.cli.run.pending import PendingCause
from trainer.explain import Cause
from trainer.framework.status.status import UNTOUCHED
from trainer.kube.client import Client
from trainer.kube.clock import Clock
from trainer.kube.objects import Object, ObjectKey, key_of, uid_of
from trainer.kube.podlogs.container_log import ContainerLogOptions
from trainer.kube.podlogs.instant import Instant
from trainer.kube.resource import EVENTS, JOBS
from trainer.kube.selection import Selection
from trainer.progress.containers import ResultSource, StartedContainer, result_source_of
from trainer.progress.lines.log_lines import log_lines
from trainer.progress.lines.terminal_line import without_colors

_HINT_SECONDS = 10.0
"""After this time without a sign of a controller the user gets a hint."""
_PROGRESS_SECONDS = 60.0
"""After this time without progress of a training that runs the user gets a hint."""
_PROGRESS_HINT = (
    "no progress or metrics found in the log so far; lines such as `Epoch 3/10 loss=0.31` are understood, and "
    "docs/progress.md says how each framework reports"
)
_SAYS_LITTLE = frozenset({UNTOUCHED, State.CREATED, State.RUNNING})
"""States that do not say that pods wait for nodes."""
_RESULT = re.compile(r"test \w+: ")


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """How a job ended."""

    state: JobState | None
    """None: the job was deleted."""
    result: str = ""
    """The line that node 0 or the launcher printed with the result (`test accuracy: ...`), else its last line."""

    @property
    def is_complete(self) -> bool:
        """Whether the job ended well."""
        return self.state is not None and self.state.is_complete


async def follow_jobs(
    client: Client,
    jobs: Sequence[Object],
    display: JobDisplay,
    clock: Clock,
    options: ContainerLogOptions = WHOLE,
) -> Mapping[ObjectKey, JobOutcome]:
    """Follow jobs, as the server returned them, until all have ended; the options say where their logs begin."""
    outcomes: dict[ObjectKey, JobOutcome] = {}

    async def follow(job: Object) -> None:
        follower = _JobFollower(client, job, display, clock, options)
        outcomes[follower.key] = await follower.run()

    async with anyio.create_task_group() as background:
        background.start_soon(display.keep_fresh)
        async with anyio.create_task_group() as followers:
            for job in jobs:
                followers.start_soon(follow, job)
        background.cancel_scope.cancel()
    return outcomes


class _JobFollower(LogConsumer):
    """Follows one job: its logs, its state and its warning events go to the display."""

    def __init__(
        self,
        client: Client,
        job: Object,
        display: JobDisplay,
        clock: Clock,
        options: ContainerLogOptions,
    ) -> None:
        self._client = client
        self._display = display
        self._clock = clock
        self.key = key_of(job)
        self._state = JobState()
        self._warnings = JobWarnings(job, self.warn)
        self._runs = anyio.Event()
        self._pending = PendingCause(client, self.key, clock, self._advise)
        self._logs = JobLogs(client, job, clock, self, choose=self._choose, options=lambda _: options)
        self._progress = LoggedProgress(client, job)
        self._result_sources: dict[str, ResultSource] = {}
        self._result = ""
        self._authority = (False, ResultSource.NONE)

    async def run(self) -> JobOutcome:
        """Follow the job to its end."""
        namespace, name = self.key
        async with anyio.create_task_group() as tasks:
            of_jobset = Selection(namespace, label_selector=f"{JOBSET_NAME}={name}")
            warnings = Selection(namespace, field_selector="type=Warning")
            for receive, resource, selection, watched in (
                (self._warnings.see_object, JOBS, of_jobset, "its Jobs"),
                (self._warnings.see_event, EVENTS, warnings, "warnings of its namespace"),
            ):
                informer = watch_for(Receiver(tasks, receive), self._client, resource, selection, self._clock)
                tasks.start_soon(report_errors, informer, watched, self.warn, self._clock)
            for task in (
                self._hint_at_missing_controller,
                self._hint_at_missing_progress,
                partial(self._warnings.show_unscheduled, self._clock, self._says_little),
                self._pending.run,
            ):
                tasks.start_soon(task)
            still_exists = await self._logs.run()
            tasks.cancel_scope.cancel()
        if not still_exists:
            self.warn("the TrainJob was deleted")
            return JobOutcome(None, self._result)
        self._display.state(self.key, self._state)
        return JobOutcome(self._state, self._result)

    def take(self, container: StartedContainer, block: bytes) -> None:
        """See `LogConsumer`."""
        for line in log_lines(block, with_overwritten=True):
            if line.is_overwritten:
                self._display.log_state(self.key, container.source, line.text)
                continue
            self._display.log(self.key, container.source, line.text)
            self._note_result(without_colors(line.text), self._result_sources.get(container.pod_uid, ResultSource.NONE))
        if self._progress.take(container, block):
            self._show(self._state)

    def take_state(self, container: StartedContainer, line: bytes) -> None:
        """See `LogConsumer`."""
        for state in log_lines(line):
            self._display.log_state(self.key, container.source, state.text)
        if self._progress.take_state(container, line, Instant.of(self._clock.now())):
            self._show(self._state)

    def see_job(self, job: Object) -> None:
        """See `LogConsumer`."""
        self._progress.see_job(job)
        self._show(JobState.of(job))

    def see_pod(self, pod: Object) -> None:
        """See `LogConsumer`."""
        self._warnings.see_object(pod)
        self._progress.see_pod(pod)
        self._show(self._state)

    def _show(self, state: JobState) -> None:
        """Show the state with what the logs say; that of an ended job when the logs are complete."""
        self._state = state.with_progress(self._progress.latest).with_steps(self._progress.steps)
        if self._state.word == State.RUNNING:
            self._runs.set()
        shown = self._pending.shown(self._state)
        if shown is not None and not shown.is_terminal:
            self._display.state(self.key, shown)

    def _advise(self, cause: Cause | None) -> None:
        """Show why it is Pending, after that was looked for, and what to do, once for each cause."""
        self._show(self._state)
        if cause is not None and self._state.word == State.PENDING:
            self._display.advice(self.key, cause.remedy)

    def _says_little(self) -> bool:
        return self._state.word in _SAYS_LITTLE

    def warn(self, text: str) -> None:
        """See `LogConsumer`."""
        self._display.warning(self.key, text)

    async def _choose(self, pods: Sequence[Object]) -> Iterable[StartedContainer]:
        await self._progress.see_pods(pods)
        training_job = await self._progress.primary.training_job(pods)
        self._result_sources |= {uid_of(pod): result_source_of(pod, training_job) for pod in pods}
        return await all_containers(pods)

    def _note_result(self, text: str, source: ResultSource) -> None:
        authority = (_RESULT.match(text) is not None, source)
        if source is not ResultSource.NONE and text.strip() and authority >= self._authority:
            self._result, self._authority = text, authority

    async def _hint_at_missing_controller(self) -> None:
        await self._clock.sleep(_HINT_SECONDS)
        if self._state.is_untouched:
            hint = "no controller manager has handled the TrainJob yet: check whether one is running (trainer status)"
            self.warn(hint)

    async def _hint_at_missing_progress(self) -> None:
        """Say how to get progress where a training has run for a minute without any, and its log is read."""
        await self._runs.wait()
        await self._clock.sleep(_PROGRESS_SECONDS)
        while self._state.word != State.RUNNING or self._state.step is not None:
            await self._clock.sleep(_PROGRESS_SECONDS)
        if self._state.progress.updated is None and self._progress.is_monitored:
            self._display.hint(self.key, _PROGRESS_HINT)
