"""Following TrainJobs to their end: states, node logs and warnings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import anyio

from trainer.api.jobset_labels import JOBSET_NAME
from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.jobs.receiver import Receiver, report_errors, watch_for
from trainer.cli.jobs.state import JobState
from trainer.cli.logs.follower import WHOLE, JobLogs, LogConsumer, all_containers
from trainer.cli.run.display import JobDisplay
from trainer.cli.run.logged_progress import LoggedProgress
from trainer.framework.deploying.deployer import FIELD_MANAGER
from trainer.kube.client import Client
from trainer.kube.clock import Clock
from trainer.kube.objects import Object, ObjectKey, controller_of, key_of, metadata_of, name_of, uid_of
from trainer.kube.podlogs.container_log import ContainerLogOptions
from trainer.kube.podlogs.instant import Instant
from trainer.kube.resource import EVENTS, JOBS
from trainer.kube.selection import Selection
from trainer.progress.containers import ResultSource, StartedContainer, result_source_of
from trainer.progress.log_lines import log_lines
from trainer.progress.terminal_line import without_colors


class JobWarnings:
    """Prints the Warning events of a namespace that concern one job or an object of it."""

    def __init__(self, job: Object, show: Callable[[str], None]) -> None:
        self._name = name_of(job)
        self._created: str = metadata_of(job).get("creationTimestamp") or ""
        self._show = show
        self._uids = {uid_of(job)}
        self._unclaimed: dict[str, Object] = {}
        self._shown: set[tuple[str, str, str]] = set()

    def see_object(self, obj: Object) -> None:
        """Take an object of the job, and its controller (a Job's is the JobSet)."""
        self._uids |= {uid_of(obj), (controller_of(obj) or {}).get("uid", "")}
        for event in list(self._unclaimed.values()):
            self.see_event(event)

    def see_event(self, event: Object) -> None:
        """Show the event if it concerns the job, or later, once its object is known to be one of the job's.

        Events of the TrainJob controller about the TrainJob repeat its conditions, which are shown anyway.
        """
        about = event.get("involvedObject") or {}
        repeats = about.get("kind") == TRAIN_JOBS.kind and event.get("reportingComponent") == FIELD_MANAGER
        if event.get("type") != "Warning" or repeats:
            return
        if not self._concerns_job(about, event):
            self._unclaimed[uid_of(event)] = event
            return
        self._unclaimed.pop(uid_of(event), None)
        kind, name = about.get("kind", ""), about.get("name", "")
        said = (event.get("reason", ""), event.get("message", ""))
        # A thousand pods often have the same problem.
        content = (kind if kind == "Pod" else f"{kind} {name}", *said)
        if content not in self._shown:
            self._shown.add(content)
            self._show(": ".join(part for part in (f"{kind} {name}", *said) if part))

    def _concerns_job(self, about: Mapping[str, str], event: Object) -> bool:
        if about.get("uid") in self._uids:
            return True
        seen = event.get("lastTimestamp") or event.get("eventTime") or ""
        return about.get("kind") == "JobSet" and about.get("name") == self._name and seen >= self._created


_HINT_SECONDS = 10.0
"""After this time without a sign of a controller the user gets a hint."""
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
        self, client: Client, job: Object, display: JobDisplay, clock: Clock, options: ContainerLogOptions
    ) -> None:
        self._client = client
        self._display = display
        self._clock = clock
        self.key = key_of(job)
        self._state = JobState()
        self._warnings = JobWarnings(job, self.warn)
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
            tasks.start_soon(self._hint_at_missing_controller)
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
        if not self._state.is_terminal:
            self._display.state(self.key, self._state)

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
