"""The status of a TrainJob (KEP-2170, "State Transition"), derived from what was observed and what it was before.

Beyond the KEP's conditions there are Pending, Stopping and Restarting, with the pod problems that plugins have seen,
those that plugins report themselves, and Stalled, which is written with the progress and only read here.
`observedGeneration` says for which spec all this is true; it is written even if nothing else changes, since tools wait
for it (kstatus).
Conditions of a TrainJob that has ended are final.

The message of a condition is the only memory of which problems have been reported, since the cluster is the only state.
It has one line for each problem, which stays the same while the headline does: the pods of a large job that get into
trouble one after another cause few writes, and one event for each reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from trainer.api.metadata import Condition
from trainer.api.trainjob import TrainJob
from trainer.api.trainjob_status import (
    ConditionReason,
    ConditionType,
    JobStatus,
    NodeScale,
    RestartCounts,
    State,
    TrainJobStatus,
)
from trainer.framework.plugin_api.failure import failure_message
from trainer.framework.plugin_api.reports import Outcome, PodProblem, StatusCondition
from trainer.kube.clock import parse_timestamp
from trainer.kube.objects import Object, find_condition, is_condition_true

MESSAGE_LIMIT = 32768
"""Characters of a condition's message (Kubernetes `metav1.Condition`)."""

_STATUSES: dict[bool | None, Literal["True", "False", "Unknown"]] = {True: "True", False: "False", None: "Unknown"}


class Conditions:
    """A list of conditions, one of each type; setting one keeps its transition time unless its status changes."""

    def __init__(self, conditions: Iterable[Condition], now: str, generation: int | None = None) -> None:
        self._by_type = {condition.type: condition for condition in conditions}
        self._now = now
        self._generation = generation

    @classmethod
    def of(cls, status: TrainJobStatus | None) -> Conditions:
        """Those of a status, to be read."""
        return cls((status and status.conditions) or [], "")

    def get(self, condition_type: str) -> Condition | None:
        """The condition of this type."""
        return self._by_type.get(condition_type)

    def is_true(self, condition_type: str) -> bool:
        """Whether the condition is there and holds."""
        condition = self._by_type.get(condition_type)
        return condition is not None and condition.status == "True"

    def is_false(self, condition_type: str) -> bool:
        """Whether the condition is there and does not hold."""
        condition = self._by_type.get(condition_type)
        return condition is not None and condition.status == "False"

    def set(self, condition_type: str, *, holds: bool | None, reason: str, message: str) -> None:
        """Add the condition or change it in its place; `holds` is None when that is not known."""
        status = _STATUSES[holds]
        previous = self._by_type.get(condition_type)
        since = previous.last_transition_time if previous and previous.status == status else self._now
        self._by_type[condition_type] = Condition(
            type=condition_type,
            status=status,
            reason=reason,
            message=message[:MESSAGE_LIMIT],
            last_transition_time=since,
            observed_generation=self._generation,
        )

    def to_list(self) -> list[Condition]:
        """The conditions in the order in which they were first set."""
        return list(self._by_type.values())


_DETAILS_LIMIT = 500
"""Characters; schedulers have something to say about each node."""


def reported_lines(condition: Condition | None) -> list[str]:
    """The lines that a condition reports or has reported, each with its reason."""
    lines = condition.message.splitlines() if condition is not None else []
    if condition is None or condition.status != "True" or not lines:
        return lines
    beginning = f"{condition.reason}: "
    return [f"{beginning}{lines[0].removeprefix(beginning)}", *lines[1:]]


def message_of(lines: Sequence[str], reason: str) -> str:
    """The message of a condition with these lines; its own reason, which is that of the first, is not repeated."""
    return "\n".join(lines).removeprefix(f"{reason}: ")


def problem_lines(present: Sequence[PodProblem], reported: Sequence[str]) -> list[str]:
    """One line for each problem, the same as before where it was reported already."""
    return [_line(problem, reported) for problem in present]


def due_events(present: Iterable[PodProblem], reported: Sequence[str]) -> list[tuple[str, str]]:
    """Reason and message of the events that are due; arguments as for `problem_lines`.

    A reason for which pods wait or stop is reported once, for however many pods; each restart is reported.
    """
    return [
        (problem.reason, _line(problem, reported).removeprefix(f"{problem.reason}: "))
        for problem in present
        if not _is_reported(problem, reported)
    ]


def _is_reported(problem: PodProblem, reported: Sequence[str]) -> bool:
    if problem.type is not ConditionType.RESTARTING:
        return any(line.startswith(f"{problem.reason}: ") for line in reported)
    return _same(problem, reported) is not None


def _line(problem: PodProblem, reported: Sequence[str]) -> str:
    same = _same(problem, reported)
    if same is not None:
        return same
    details = " ".join(problem.details().split())[:_DETAILS_LIMIT]
    beginning = _beginning(problem)
    return f"{beginning}: {details}" if details else beginning


def _same(problem: PodProblem, reported: Sequence[str]) -> str | None:
    beginning = _beginning(problem)
    return next((line for line in reported if line == beginning or line.startswith(f"{beginning}: ")), None)


def _beginning(problem: PodProblem) -> str:
    return f"{problem.reason}: {problem.headline}"


CORE_CONDITIONS: frozenset[str] = frozenset(ConditionType)
"""Types of conditions that plugins must not report."""
_OWNED = CORE_CONDITIONS - {ConditionType.STALLED}
_GOING = frozenset({State.RUNNING, State.STALLED})
_ENDS = (ConditionType.COMPLETE, ConditionType.FAILED)
JOBS_CREATED = "Succeeded to create Jobs"
"""The message of the condition Created when it is True; what the cluster has not applied follows a semicolon."""
UNTOUCHED = "Submitted"
"""The word for a TrainJob of which no controller has written a state yet."""


@dataclass(frozen=True, slots=True)
class Ensured:
    """Whether the objects of a TrainJob exist as it asks for: the condition Created, and what is left to do."""

    exist: bool
    reason: ConditionReason
    message: str
    is_whole: bool = True
    """Whether the cluster has accepted everything that the TrainJob asks for; else an event warns of it. Defaults to
    yes."""
    runtime_digest: str = ""
    """Digest of the runtime that the objects are built on (`runtimes.runtimes.digest_of`). Defaults to none."""
    is_resumed: bool = False
    """Whether they run although the TrainJob is suspended, since somebody else has resumed them. Defaults to no."""
    may_wait: bool = False
    """Whether the status may wait, so that the objects of other TrainJobs are created first. Defaults to no."""
    error: Exception | None = None
    """Why they do not exist, or changes could not be applied, if a retry may help. Defaults to no failure."""
    retry_after: float | None = None
    """Seconds until a change that the cluster has rejected is tried again. Defaults to never."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What one reconcile has seen."""

    ensured: Ensured | None = None
    """None when nothing was built, because the TrainJob has finished."""
    outcome: Outcome | None = None
    """None while the training goes on."""
    jobs: Sequence[JobStatus] | None = None
    """None when there are no child Jobs to count."""
    scale: NodeScale | None = None
    """How many nodes an elastic training has and may have; None for every other, and when it is unknown."""
    restarts: RestartCounts | None = None
    """How often the Jobs that are counted have started again; None when they never have, and when it is unknown."""
    pod_problems: Sequence[PodProblem] = ()
    """The problems that keep pods from running. Defaults to none."""
    conditions: Sequence[StatusCondition] = ()
    """The conditions that plugins report. Defaults to none."""
    plugin_types: AbstractSet[str] = frozenset()
    """Types of all conditions that plugins may report and this controller therefore owns. Defaults to none."""
    log: tuple[str, ...] = ()
    """The last lines of the log of the container that failed. Defaults to none."""
    errors: tuple[Exception, ...] = ()
    """Errors of plugins; the condition Created shows them as well. Defaults to none."""
    requeue_after: float | None = None
    """Seconds after which the TrainJob is reconciled again. Defaults to waiting for a change."""

    @property
    def error(self) -> Exception | None:
        """The failure for which the TrainJob is reconciled again; None without one."""
        error = None if self.ensured is None else self.ensured.error
        return error or next(iter(self.errors), None)


def is_finished(train_job: TrainJob) -> bool:
    """Whether the TrainJob is complete or failed; it stays so, and its Jobs are never made again."""
    conditions = (train_job.status and train_job.status.conditions) or ()
    return any(condition.type in _ENDS and condition.status == "True" for condition in conditions)


def has_ended(train_job: Mapping[str, Any]) -> bool:
    """Whether a TrainJob, as JSON, is complete or failed."""
    return is_condition_true(train_job, ConditionType.COMPLETE) or is_condition_true(train_job, ConditionType.FAILED)


def state_word(train_job: Mapping[str, Any]) -> str:
    """The state of a TrainJob, as JSON, in a word: how it ended, else `status.state`, else Submitted.

    Kubeflow Trainer (Go) writes no state.
    """
    end = next((end for end in _ENDS if is_condition_true(train_job, end)), None)
    return str(end or (train_job.get("status") or {}).get("state") or UNTOUCHED)


def end_of(train_job: Mapping[str, Any]) -> datetime | None:
    """When a TrainJob, as JSON, ended; None if it has not, or if the time is unknown."""
    found = (find_condition(train_job, end) for end in _ENDS)
    times = [end.get("lastTransitionTime") for end in found if end is not None and end.get("status") == "True"]
    return min((parse_timestamp(time) for time in times if time), default=None)


def next_status(train_job: TrainJob, seen: Observation, now: str) -> TrainJobStatus:
    """The status that we own; progress and conditions of others belong to others and are left out.

    Once the TrainJob has finished, its conditions and state are final.
    """
    previous, generation = train_job.status or TrainJobStatus(), train_job.metadata.generation
    jobs = list(seen.jobs) if seen.jobs is not None else previous.jobs_status
    has_finished = is_finished(train_job)
    if seen.jobs is None and has_finished and not seen.errors:
        jobs = _stopped(jobs)
    digest = (seen.ensured and seen.ensured.runtime_digest) or previous.runtime_digest
    ours = _ours(previous, seen.plugin_types)
    status = TrainJobStatus(
        conditions=ours,
        jobs_status=jobs,
        state=previous.state or _end_state(ours),
        start_time=previous.start_time,
        observed_generation=generation,
        scale=seen.scale or previous.scale,
        restarts=previous.restarts if seen.jobs is None else seen.restarts,
        runtime_digest=digest,
    )
    if has_finished:
        return status
    conditions = Conditions(ours, now, generation)
    if seen.ensured:
        conditions.set(
            ConditionType.CREATED,
            holds=seen.ensured.exist,
            reason=seen.ensured.reason,
            message="; ".join(map(str, (seen.ensured.message, *seen.errors))),
        )
    is_resumed = seen.ensured is not None and seen.ensured.is_resumed
    _set_suspended(conditions, suspend=train_job.spec.suspend, is_resumed=is_resumed)
    for condition in seen.conditions:
        conditions.set(condition.type, holds=condition.holds, reason=condition.reason, message=condition.message)
    _set_pod_problems(conditions, train_job, seen)
    if seen.outcome:
        message = failure_message(seen.outcome.culprit, seen.outcome.message, seen.log)
        conditions.set(seen.outcome.type, holds=True, reason=seen.outcome.reason, message=message)
    status.conditions = conditions.to_list()
    status.state = _state(conditions, seen.jobs or [], previous)
    if status.start_time is None and _is_let_run(conditions):
        status.start_time = _start(train_job, previous, conditions, now)
    return status


def _end_state(conditions: list[Condition]) -> State | None:
    """The state of a TrainJob that has ended, perhaps under another manager."""
    ended = {condition.type for condition in conditions if condition.status == "True"}
    return next((state for state in (State.FAILED, State.COMPLETE) if state.value in ended), None)


def _start(train_job: TrainJob, previous: TrainJobStatus, conditions: Conditions, now: str) -> str:
    """When a TrainJob was first allowed to run; another manager may have started it earlier."""
    if previous.state is not None or not previous.jobs_status:
        return now
    suspended = conditions.get(ConditionType.SUSPENDED)
    return suspended.last_transition_time if suspended else train_job.metadata.creation_timestamp or now


def _stopped(jobs: list[JobStatus] | None) -> list[JobStatus] | None:
    """The counts of Jobs that have been deleted: what had ended stays so, and nothing runs any more."""
    zeros = {"active": 0, "ready": 0, "suspended": 0}
    return None if jobs is None else [job.model_copy(update=zeros) for job in jobs]


def owned_fields(status: TrainJobStatus, plugin_types: AbstractSet[str] = frozenset()) -> Object:
    """The fields of a status that this controller owns, as JSON that is equal for equal states."""
    owned = TrainJobStatus(
        conditions=_ours(status, plugin_types),
        jobs_status=sorted(status.jobs_status or [], key=lambda job: job.name) or None,
        state=status.state,
        start_time=status.start_time,
        observed_generation=status.observed_generation,
        scale=status.scale,
        restarts=status.restarts,
        runtime_digest=status.runtime_digest,
    )
    return owned.to_object()


def _ours(status: TrainJobStatus, plugin_types: AbstractSet[str]) -> list[Condition]:
    owned = _OWNED | plugin_types
    return [condition for condition in status.conditions or [] if condition.type in owned]


def _is_let_run(conditions: Conditions) -> bool:
    return conditions.is_true(ConditionType.CREATED) and not conditions.is_true(ConditionType.SUSPENDED)


def _set_suspended(conditions: Conditions, *, suspend: bool, is_resumed: bool) -> None:
    """Set the condition Suspended; a TrainJob that was never suspended has none."""
    if suspend and is_resumed:
        message = "TrainJob is suspended, but somebody else has resumed its Jobs; resume and suspend it to stop them"
        conditions.set(ConditionType.SUSPENDED, holds=False, reason=ConditionReason.RESUMED, message=message)
    elif suspend:
        conditions.set(
            ConditionType.SUSPENDED, holds=True, reason=ConditionReason.SUSPENDED, message="TrainJob is suspended"
        )
    elif conditions.get(ConditionType.SUSPENDED) is not None:
        conditions.set(
            ConditionType.SUSPENDED, holds=False, reason=ConditionReason.RESUMED, message="TrainJob is resumed"
        )


def _set_pod_problems(conditions: Conditions, train_job: TrainJob, seen: Observation) -> None:
    """Set Pending, Stopping and Restarting; a TrainJob that has ended is none, and a suspended one only Stopping."""
    goes_on = seen.outcome is None and not train_job.spec.suspend
    stopping = [each for each in seen.pod_problems if each.type is ConditionType.STOPPING and seen.outcome is None]
    _set_problems(conditions, ConditionType.STOPPING, stopping, ConditionReason.PODS_GONE)
    present = seen.pod_problems if goes_on else ()
    pending = [problem for problem in present if problem.type is ConditionType.PENDING]
    _set_problems(conditions, ConditionType.PENDING, pending, ConditionReason.NO_POD_WAITS)
    restarting = [problem for problem in present if problem.type is ConditionType.RESTARTING]
    # The failed pods may be gone before the new ones are there: a restart is over when some are ready again.
    lasts = goes_on and not any(job.ready or job.succeeded for job in seen.jobs or [])
    _set_problems(conditions, ConditionType.RESTARTING, restarting, ConditionReason.RESTART_ENDED, lasts=lasts)


def _set_problems(
    conditions: Conditions,
    condition_type: ConditionType,
    present: Sequence[PodProblem],
    otherwise: ConditionReason,
    *,
    lasts: bool = False,
) -> None:
    """Set one of them; a TrainJob that never had problems has none, and afterwards its message still names them."""
    previous, was_true = conditions.get(condition_type), conditions.is_true(condition_type)
    if present:
        reason = present[0].reason
        message = message_of(problem_lines(present, reported_lines(previous) if was_true else []), reason)
        conditions.set(condition_type, holds=True, reason=reason, message=message)
    elif previous is not None:
        lasts = lasts and was_true
        reason = previous.reason if lasts else otherwise
        message = previous.message if lasts else "\n".join(reported_lines(previous))
        conditions.set(condition_type, holds=lasts, reason=reason, message=message)


_NAMED_AS_STATES = (ConditionType.STOPPING, ConditionType.SUSPENDED, ConditionType.PENDING, ConditionType.RESTARTING)
"""Conditions with the name of the state that they make; the first that holds counts."""


def _state(conditions: Conditions, jobs: Sequence[JobStatus], previous: TrainJobStatus) -> State | None:
    if (end := _end_state(conditions.to_list())) is not None:
        return end
    if conditions.is_false(ConditionType.CREATED):
        return State.BLOCKED
    if (found := next(filter(conditions.is_true, _NAMED_AS_STATES), None)) is not None:
        return State(found)
    # A pod that restarts is not ready for a moment; the training still runs.
    if previous.state in _GOING or any(job.ready or job.succeeded or job.failed for job in jobs):
        is_stalled = Conditions.of(previous).is_true(ConditionType.STALLED)
        return State.STALLED if is_stalled else State.RUNNING
    return State.CREATED if conditions.is_true(ConditionType.CREATED) else None
