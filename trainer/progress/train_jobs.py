"""TrainJobs as the progress controller reads them: which changes matter, what they show, whose log need not be read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Self

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.metric_curve import CURVE, shows_final_curve
from trainer.api.trainjob_status import STEP_FIELDS, ConditionType, TrainerStatus
from trainer.framework.status.status import end_of, has_ended
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.objects import Object, is_condition_true
from trainer.kube.podlogs.instant import Instant
from trainer.progress.checkpoints import is_checkpoint_alone
from trainer.progress.silence import shows_silence

REMAINING = frozenset({"estimatedRemainingSeconds", "estimatedRemainingTimeSummary"})
"""The fields of the remaining time; a TrainJob that has ended, is suspended or is stalled does not have them."""
SETTLED_AFTER = timedelta(minutes=10)
"""A manager that starts reads the log of an ended TrainJob for this long after its end."""


def train_job_changed(old: CachedObject | None, new: CachedObject | None) -> bool:
    """Predicate: passes changes that matter to a reconcile, and not each write of the progress."""
    return old is None or new is None or _decisive(old) != _decisive(new)


def progress_changed(old: CachedObject | None, new: CachedObject | None) -> bool:
    """Predicate: passes each write of the progress, which may have been pushed to another replica."""
    if old is None or new is None:
        return False
    before, after = ((obj.get("status") or {}).get("trainerStatus") for obj in (old, new))
    return before != after


def _decisive(obj: CachedObject) -> tuple[Any, ...]:
    status = {"status": obj.get("status")}
    is_outdated = has_stopped(status) and shows_remaining(status)
    annotations = dict(obj.annotations)
    has_final_curve = shows_final_curve(annotations, obj.uid)
    annotations.pop(CURVE, None)  # which we write ourselves
    return obj.uid, obj.meta.deletion_timestamp is None, annotations, has_final_curve, has_ended(status), is_outdated


def has_stopped(obj: Mapping[str, Any]) -> bool:
    """Whether a TrainJob, as JSON, has ended or is suspended, so that no remaining time is shown."""
    return has_ended(obj) or is_condition_true(obj, ConditionType.SUSPENDED)


def progress_of(obj: Mapping[str, Any]) -> Object:
    """The trainerStatus of a TrainJob, as JSON; empty without one."""
    return (obj.get("status") or {}).get("trainerStatus") or {}


def reported_of(obj: Mapping[str, Any]) -> Object:
    """The trainerStatus of a TrainJob, as JSON; empty where the training has reported no progress."""
    shown = progress_of(obj)
    return {} if is_checkpoint_alone(shown) else shown


def shows_remaining(obj: Mapping[str, Any]) -> bool:
    """Whether a TrainJob, as JSON, shows a remaining time."""
    return not REMAINING.isdisjoint(progress_of(obj))


def shown_steps(obj: Mapping[str, Any]) -> Object:
    """The fields of a TrainJob's status that show the steps beside the training."""
    status = obj.get("status") or {}
    return {name: status[name] for name in STEP_FIELDS.values() if name in status}


def shown_progress(obj: Object) -> TrainerStatus | None:
    """The progress that a TrainJob shows; None without any, or if it is malformed."""
    shown = reported_of(obj)
    if shows_silence(shown):  # words of the manager, which the training has not reported
        shown = {name: value for name, value in shown.items() if name not in REMAINING}
    try:
        return TrainerStatus.from_object(shown) if shown else None
    except InvalidObjectError:
        return None


class ShownProgress(NamedTuple):
    """What tells the progress that a TrainJob shows from other progress: both versions have these fields."""

    time: str
    """lastUpdatedTime, in whole seconds where it is that of a log; "" without progress."""
    percentage: object = None

    @classmethod
    def of(cls, obj: Object) -> Self:
        """That of a TrainJob."""
        shown = reported_of(obj)
        return cls(str(shown.get("lastUpdatedTime") or ""), shown.get("progressPercentage"))

    def is_later_than(self, status: TrainerStatus) -> bool:
        """Whether it was reported after this; not where one of the times cannot be read."""
        own, other = Instant.parse(self.time), Instant.parse(status.last_updated_time)
        return own is not None and other is not None and own > other


NOTHING_SHOWN = ShownProgress("")


def is_settled(obj: Object, now: datetime) -> bool:
    """Whether the log of an ended TrainJob need not be read, because an earlier manager has read it.

    A manager that starts beside thousands of ended TrainJobs reads only those that ended within `SETTLED_AFTER`.
    """
    if shows_remaining(obj):
        return False
    ended = end_of(obj)
    return ended is not None and now - ended > SETTLED_AFTER
