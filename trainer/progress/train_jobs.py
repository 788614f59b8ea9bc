"""TrainJobs as the progress controller reads them: which changes matter, what they show, whose log need not be read."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.trainjob_status import TrainerStatus
from trainer.framework.status.status import end_of, has_ended
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.objects import Object
from trainer.progress.writer import has_stopped, shows_remaining

SETTLED_AFTER = timedelta(minutes=10)
"""A manager that starts reads the log of an ended TrainJob for this long after its end."""


def train_job_changed(old: CachedObject | None, new: CachedObject | None) -> bool:
    """Predicate: passes changes that matter to a reconcile, and not each write of the progress."""
    return old is None or new is None or _decisive(old) != _decisive(new)


def progress_changed(old: CachedObject | None, new: CachedObject | None) -> bool:
    """Predicate: passes each write of the progress, which may have been pushed to another replica."""
    return old is not None and new is not None and _progress(old) != _progress(new)


def _progress(obj: CachedObject) -> object:
    return (obj.get("status") or {}).get("trainerStatus")


def _decisive(obj: CachedObject) -> tuple[Any, ...]:
    status = {"status": obj.get("status")}
    is_outdated = has_stopped(status) and shows_remaining(status)
    return obj.uid, obj.meta.deletion_timestamp is None, obj.annotations, has_ended(status), is_outdated


def shown_progress(obj: Object) -> TrainerStatus | None:
    """The trainerStatus of a TrainJob; None without one, or if it is malformed."""
    shown = (obj.get("status") or {}).get("trainerStatus")
    try:
        return TrainerStatus.from_object(shown) if shown else None
    except InvalidObjectError:
        return None


def is_settled(obj: Object, now: datetime) -> bool:
    """Whether the log of an ended TrainJob need not be read, because an earlier manager has read it.

    A manager that starts beside thousands of ended TrainJobs reads only those that ended within `SETTLED_AFTER`.
    """
    if shows_remaining(obj):
        return False
    ended = end_of(obj)
    return ended is not None and now - ended > SETTLED_AFTER
