"""A TrainJob as one reconcile reads it, with its deadline and its time to live.

`activeDeadlineSeconds` counts from the creation or the last resumption, and so includes queueing and initializers
(KEP-2899 of Kubeflow Trainer); a suspended TrainJob has no deadline. `ttlSecondsAfterFinished` counts from its end.
Both are derived from the TrainJob alone, so a restart of the manager changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property

from trainer.api.trainjob import TrainJob
from trainer.api.trainjob_status import ConditionReason, ConditionType, TrainJobStatus
from trainer.framework.plugin_api.reports import Outcome
from trainer.framework.status.status import Conditions, is_finished
from trainer.kube.clock import parse_timestamp
from trainer.kube.objects import Object, is_condition_true, uid_of


@dataclass(frozen=True)
class Job:
    """A TrainJob."""

    model: TrainJob
    stored: Object
    """The same as JSON, as the cache has it."""

    @classmethod
    def of(cls, stored: Object) -> Job:
        """Read a stored TrainJob.

        Raises:
            InvalidObjectError: it does not fit its schema.
        """
        return cls(TrainJob.from_object(stored), stored)

    @property
    def uid(self) -> str:
        """Its uid."""
        return uid_of(self.stored)

    @property
    def is_created(self) -> bool:
        """Whether its status says that its objects exist."""
        return is_condition_true(self.stored, ConditionType.CREATED)

    @cached_property
    def is_finished(self) -> bool:
        """Whether it is complete or failed."""
        return is_finished(self.model)

    def seconds_left(self, now: datetime) -> float | None:
        """Seconds until its deadline, negative past it; None without one."""
        deadline = deadline_of(self.model, now)
        return None if deadline is None else (deadline - now).total_seconds()

    def deadline_outcome(self, now: datetime) -> Outcome | None:
        """How it ends at its deadline; None before, and without one."""
        left = self.seconds_left(now)
        if left is None or left > 0:
            return None
        limit = self.model.spec.active_deadline_seconds
        message = f"TrainJob was active for longer than spec.activeDeadlineSeconds ({limit} s)"
        return Outcome(ConditionType.FAILED, ConditionReason.DEADLINE_EXCEEDED, message)

    @property
    def ended_at_deadline(self) -> bool:
        """Whether it failed because of its deadline, so that its objects must be deleted."""
        failed = Conditions.of(self.model.status).get(ConditionType.FAILED)
        return failed is not None and failed.status == "True" and failed.reason == ConditionReason.DEADLINE_EXCEEDED

    def with_status(self, status: TrainJobStatus) -> Job:
        """The same with a new status in its model."""
        return replace(self, model=self.model.model_copy(update={"status": status}))


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
