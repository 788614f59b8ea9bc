"""The deadline (`activeDeadlineSeconds`) and the time to live (`ttlSecondsAfterFinished`) of a TrainJob.

Both are derived from the TrainJob alone, so a restart of the manager changes nothing. The deadline counts from the
creation or the last resumption, and so includes queueing and initializers (KEP-2899 of Kubeflow Trainer); a suspended
TrainJob has none.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from trainer.api.trainjob_status import ConditionReason, ConditionType
from trainer.framework.plugin_api.extension_points import Outcome
from trainer.framework.status.conditions import Conditions
from trainer.kube.clock import parse_timestamp

if TYPE_CHECKING:
    from trainer.api.trainjob import TrainJob


def deadline_of(train_job: TrainJob, now: datetime) -> datetime | None:
    """When the training has to end; None without limit and while suspended."""
    seconds = train_job.spec.active_deadline_seconds
    if seconds is None or train_job.spec.suspend:
        return None
    suspended = Conditions.of(train_job.status).get(ConditionType.SUSPENDED)
    if suspended is not None and suspended.status == "True":
        start = now  # the condition still shows the suspension that has just ended
    elif suspended is not None:
        start = parse_timestamp(suspended.last_transition_time)
    else:
        created = train_job.metadata.creation_timestamp
        start = parse_timestamp(created) if created else now
    return _later(start, seconds)


def deadline_exceeded(train_job: TrainJob) -> Outcome:
    """The outcome of a TrainJob at its deadline."""
    limit = train_job.spec.active_deadline_seconds
    return Outcome(
        ConditionType.FAILED,
        ConditionReason.DEADLINE_EXCEEDED,
        f"TrainJob was active for longer than spec.activeDeadlineSeconds ({limit} s)",
    )


def ended_at_deadline(train_job: TrainJob) -> bool:
    """Whether the TrainJob failed because of its deadline, so that its objects must be deleted."""
    failed = Conditions.of(train_job.status).get(ConditionType.FAILED)
    return failed is not None and failed.status == "True" and failed.reason == ConditionReason.DEADLINE_EXCEEDED


def expiry_of(train_job: TrainJob) -> datetime | None:
    """When a finished TrainJob will be deleted; None if it stays or has not finished."""
    seconds = train_job.spec.ttl_seconds_after_finished
    conditions = Conditions.of(train_job.status)
    ended = [conditions.get(ConditionType.COMPLETE), conditions.get(ConditionType.FAILED)]
    finished = [parse_timestamp(end.last_transition_time) for end in ended if end is not None and end.status == "True"]
    if seconds is None or not finished:
        return None
    return _later(min(finished), seconds)


def _later(start: datetime, seconds: int) -> datetime | None:
    """The later time; None if it is beyond the calendar."""
    try:
        return start + timedelta(seconds=seconds)
    except OverflowError:
        return None
