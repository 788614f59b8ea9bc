"""When TrainJobs that have not ended were created, got their JobSet and first ran, for the histograms of durations.

Timestamps in objects have whole seconds, and the status does not say when a training first ran. So every replica
records what it observes, and goes on with that when it becomes the leader. What happened before the process started is
estimated from the object: to a second, or, for a running training, from when its Jobs were created or resumed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.api.trainjob_status import ConditionType, State
from trainer.controllers.metrics.summary import EXTERNAL, UNKNOWN
from trainer.kube.clock import parse_timestamp
from trainer.kube.objects import find_condition

if TYPE_CHECKING:
    from datetime import datetime

    from trainer.controllers.metrics.summary import Summary
    from trainer.kube.cache.cached_object import CachedObject
    from trainer.kube.clock import Clock

_LATE = 3.0
"""Seconds of age from which a new TrainJob counts as missed by the watch; less may be a difference of clocks."""

_RUN = frozenset({State.RUNNING.value, State.STALLED.value, State.RESTARTING.value})
_MADE = frozenset({State.CREATED.value, State.PENDING.value, *_RUN})
_ENDS = frozenset({State.COMPLETE.value, State.FAILED.value})


@dataclass(slots=True)
class Life:
    """A TrainJob that has not ended; times are those of the monotonic clock."""

    created: float
    is_suspended: bool
    awaits_jobset_since: float | None
    """Since its creation or resumption; None while it awaits none."""
    running_since: float | None = None
    """When it was Running for the first time. Defaults to never."""
    made: float | None = None
    """When the JobSet that it awaits was created, which the status does not show yet. Defaults to never."""

    def got_jobset(self, _: float = 0) -> None:
        """Its JobSet exists, and the status shows it."""
        self.awaits_jobset_since = self.made = None

    def ran(self, at: float) -> None:
        """It is Running."""
        if self.running_since is None:
            self.running_since = at


class Milestones:
    """The lives of all cached TrainJobs that have not ended, by uid."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lives: dict[str, Life] = {}

    def of(self, uid: str) -> Life | None:
        """The life of a TrainJob; None if it has ended."""
        return self._lives.get(uid)

    def on_add(self, obj: CachedObject, summary: Summary, *, initial: bool) -> None:
        """It was added to the cache; `initial` if the first list had it."""
        if summary.state in _ENDS:
            return
        now = self._clock.monotonic()
        age = self._age(summary.created)
        if not initial and age < _LATE:
            age = 0.0
        begun = now - age
        life = self._lives[obj.uid] = Life(begun, summary.is_suspended, awaits_jobset_since=begun)
        if summary.state in {UNKNOWN, EXTERNAL}:
            return
        status = obj.get("status") or {}
        if _since(status, ConditionType.CREATED) is not None:
            life.got_jobset()
        ran = _ran_since(status, summary.state)
        if ran is not None:
            life.ran(now - self._age(ran))

    def on_update(self, uid: str, summary: Summary) -> None:
        """It was changed."""
        life = self._lives.get(uid)
        if life is None:
            return
        if summary.state in _ENDS:
            del self._lives[uid]
            return
        if summary.state in _MADE:  # by whichever replica leads
            life.got_jobset()
        if life.is_suspended and not summary.is_suspended:
            life.awaits_jobset_since, life.made = self._clock.monotonic(), None
        life.is_suspended = summary.is_suspended
        if summary.state == State.RUNNING:
            life.ran(self._clock.monotonic())

    def on_delete(self, uid: str) -> None:
        """It was deleted."""
        self._lives.pop(uid, None)

    def _age(self, moment: datetime | None) -> float:
        return 0.0 if moment is None else max((self._clock.now() - moment).total_seconds(), 0.0)


def _ran_since(status: dict[str, object], state: str) -> datetime | None:
    """When a TrainJob that seems to have run was created or last suspended or resumed."""
    made = _since(status, ConditionType.CREATED)
    if made is None:
        return None
    changed = _since(status, ConditionType.SUSPENDED, must_hold=False) or made
    # A TrainJob that was created suspended has that condition since before its Jobs exist.
    has_run = state in _RUN or "trainerStatus" in status or changed > made
    return max(made, changed) if has_run else None


def _since(status: dict[str, object], condition_type: ConditionType, *, must_hold: bool = True) -> datetime | None:
    """Since when a condition has its status; None if it is absent, or must hold and does not."""
    found = find_condition({"status": status}, condition_type)
    if found is None or (must_hold and found.get("status") != "True") or not found.get("lastTransitionTime"):
        return None
    return parse_timestamp(found["lastTransitionTime"])
