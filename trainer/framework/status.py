"""The status of a TrainJob (KEP-2170, "State Transition"), derived from what was observed and what it was before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.api.trainjob_status import ConditionReason, ConditionType, State, TrainJobStatus
from trainer.framework.conditions import Conditions

if TYPE_CHECKING:
    from trainer.api.metadata import Condition
    from trainer.api.trainjob import TrainJob
    from trainer.api.trainjob_status import JobStatus
    from trainer.framework.extension_points import Outcome
    from trainer.kube.objects import Object


@dataclass(frozen=True, slots=True)
class Creation:
    """Whether the Jobs could be built and deployed: the condition Created."""

    succeeded: bool
    reason: ConditionReason
    message: str


@dataclass(frozen=True, slots=True)
class Observation:
    """What one reconcile has seen."""

    creation: Creation | None = None
    """None when nothing was built, because the TrainJob has finished."""
    outcome: Outcome | None = None
    """None while the training goes on."""
    jobs: list[JobStatus] | None = None
    """None when there are no child Jobs to count."""


def is_finished(train_job: TrainJob) -> bool:
    """Whether the TrainJob is complete or failed; it stays so, and its Jobs are never made again."""
    conditions = Conditions((train_job.status and train_job.status.conditions) or [], "")
    return conditions.is_true(ConditionType.COMPLETE) or conditions.is_true(ConditionType.FAILED)


def next_status(train_job: TrainJob, seen: Observation, now: str) -> TrainJobStatus:
    """The status that we own: conditions, jobsStatus and state. Progress belongs to others and is left out.

    Once the TrainJob has finished, its conditions and state are final.
    """
    previous = train_job.status or TrainJobStatus()
    jobs = seen.jobs if seen.jobs is not None else previous.jobs_status
    if is_finished(train_job):
        return TrainJobStatus(conditions=_ours(previous), jobs_status=jobs, state=previous.state)
    conditions = Conditions(_ours(previous), now)
    if seen.creation:
        conditions.set(
            ConditionType.CREATED,
            holds=seen.creation.succeeded,
            reason=seen.creation.reason,
            message=seen.creation.message,
        )
    _set_suspended(conditions, suspend=train_job.spec.suspend)
    if seen.outcome:
        conditions.set(seen.outcome.type, holds=True, reason=seen.outcome.reason, message=seen.outcome.message)
    return TrainJobStatus(
        conditions=conditions.to_list(), jobs_status=jobs, state=_state(conditions, seen.jobs or [], previous.state)
    )


def owned_fields(status: TrainJobStatus) -> Object:
    """What we own of a status, as JSON that is equal for equal states."""
    owned = TrainJobStatus(
        conditions=_ours(status),
        jobs_status=sorted(status.jobs_status or [], key=lambda job: job.name) or None,
        state=status.state,
    )
    return owned.to_object()


def changed_conditions(before: TrainJobStatus | None, after: TrainJobStatus) -> list[Condition]:
    """Conditions that are new or have a new status, reason or message."""
    old = (before and before.conditions) or []
    return [condition for condition in after.conditions or [] if condition not in old]


def _ours(status: TrainJobStatus) -> list[Condition]:
    return [condition for condition in status.conditions or [] if condition.type in set(ConditionType)]


def _set_suspended(conditions: Conditions, *, suspend: bool) -> None:
    """A TrainJob that was never suspended has no such condition."""
    if suspend:
        conditions.set(
            ConditionType.SUSPENDED, holds=True, reason=ConditionReason.SUSPENDED, message="TrainJob is suspended"
        )
    elif conditions.is_true(ConditionType.SUSPENDED):
        conditions.set(
            ConditionType.SUSPENDED, holds=False, reason=ConditionReason.RESUMED, message="TrainJob is resumed"
        )


def _state(conditions: Conditions, jobs: list[JobStatus], previous: State | None) -> State | None:
    if conditions.is_true(ConditionType.FAILED):
        return State.FAILED
    if conditions.is_true(ConditionType.COMPLETE):
        return State.COMPLETE
    if conditions.is_true(ConditionType.SUSPENDED):
        return State.SUSPENDED
    # A pod that restarts is not ready for a moment; the training still runs.
    if previous is State.RUNNING or any(job.ready or job.succeeded or job.failed for job in jobs):
        return State.RUNNING
    return State.CREATED if conditions.is_true(ConditionType.CREATED) else None
