"""When TrainJobs that go on have passed their milestones, as far as this process knows.

Timestamps in objects have whole seconds, and the status does not say when a training first ran. So every replica notes
when it sees something happen; whoever leads later goes on with what it has seen while it waited. What had happened when
the process started is estimated from the object: good to a second, or, for a training that runs already, as if it had
started when its Jobs were made or resumed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.api.trainjob_status import ConditionType, State
from trainer.controllers.metrics.glimpse import EXTERNAL, UNKNOWN
from trainer.kube.clock import parse_timestamp
from trainer.kube.objects import find_condition

if TYPE_CHECKING:
    from datetime import datetime

    from trainer.controllers.metrics.glimpse import Glimpse
    from trainer.kube.cache.cached_object import CachedObject
    from trainer.kube.clock import Clock

_LATE = 3.0
"""Seconds; what seems older when it is first seen has been missed by the watch for a time. Less may be clocks that
differ."""

_RUN = frozenset({State.RUNNING.value, State.STALLED.value, State.RESTARTING.value})
_MADE = frozenset({State.CREATED.value, State.PENDING.value, *_RUN})
_ENDS = frozenset({State.COMPLETE.value, State.FAILED.value})


@dataclass(slots=True)
class Life:
    """A TrainJob that has not ended; times are those of the monotonic clock."""

    created: float
    is_suspended: bool
    awaits_jobset_since: float | None
    """Since its creation or resumption; None while it awaits none, or nobody knows since when."""
    running_since: float | None = None
    """When it was Running for the first time. Defaults to never."""
    made: float | None = None
    """When the JobSet that it awaits was made, of which the status does not tell yet. Defaults to not so."""

    def got_jobset(self, _: float = 0) -> None:
        """Its JobSet is in place, and the status tells so."""
        self.awaits_jobset_since = self.made = None

    def ran(self, at: float) -> None:
        """It is Running."""
        if self.running_since is None:
            self.running_since = at


class Milestones:
    """The lives of all TrainJobs in the cache that go on, by uid."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lives: dict[str, Life] = {}

    def of(self, uid: str) -> Life | None:
        """The life of a TrainJob; None if it has ended."""
        return self._lives.get(uid)

    def appeared(self, obj: CachedObject, glimpse: Glimpse, *, initial: bool) -> None:
        """It is in the cache; `initial` if it was there before this process could see it come."""
        if glimpse.state in _ENDS:
            return
        now = self._clock.monotonic()
        age = self._age(glimpse.created)
        if not initial and age < _LATE:
            age = 0.0
        begun = now - age
        life = self._lives[obj.uid] = Life(begun, glimpse.is_suspended, awaits_jobset_since=begun)
        if glimpse.state in {UNKNOWN, EXTERNAL}:
            return
        status = obj.get("status") or {}
        if _since(status, ConditionType.CREATED) is not None:
            life.got_jobset()
        ran = _ran_since(status, glimpse.state)
        if ran is not None:
            life.ran(now - self._age(ran))

    def changed(self, uid: str, glimpse: Glimpse) -> None:
        """It has changed."""
        life = self._lives.get(uid)
        if life is None:
            return
        if glimpse.state in _ENDS:
            del self._lives[uid]
            return
        if glimpse.state in _MADE:  # by whichever replica leads
            life.got_jobset()
        if life.is_suspended and not glimpse.is_suspended:
            life.awaits_jobset_since, life.made = self._clock.monotonic(), None
        life.is_suspended = glimpse.is_suspended
        if glimpse.state == State.RUNNING:
            life.ran(self._clock.monotonic())

    def gone(self, uid: str) -> None:
        """It has been deleted."""
        self._lives.pop(uid, None)

    def _age(self, moment: datetime | None) -> float:
        return 0.0 if moment is None else max((self._clock.now() - moment).total_seconds(), 0.0)


def _ran_since(status: dict[str, object], state: str) -> datetime | None:
    """When a TrainJob that has run, as far as can be told, was made or last suspended or resumed."""
    made = _since(status, ConditionType.CREATED)
    if made is None:
        return None
    changed = _since(status, ConditionType.SUSPENDED, must_hold=False) or made
    # One that was created as suspended is so since before its Jobs are made.
    has_run = state in _RUN or "trainerStatus" in status or changed > made
    return max(made, changed) if has_run else None


def _since(status: dict[str, object], condition_type: ConditionType, *, must_hold: bool = True) -> datetime | None:
    """Since when a condition has its status; None if it is not there, or must hold and does not."""
    found = find_condition({"status": status}, condition_type)
    if found is None or (must_hold and found.get("status") != "True") or not found.get("lastTransitionTime"):
        return None
    return parse_timestamp(found["lastTransitionTime"])
