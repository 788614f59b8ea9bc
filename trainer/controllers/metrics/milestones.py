"""When TrainJobs that have not ended were created, got their JobSet and first ran, for the histograms of durations.

Timestamps in objects have whole seconds, and the status does not say when a training first ran. So every replica
records what it observes, and goes on with that when it becomes the leader. What happened before the process started is
estimated from the object: to a second, or, for a running training, from when its Jobs were created or resumed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from sys import intern

import msgspec

from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOB_CONTROLLER
from trainer.api.trainjob_status import ConditionType, State
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.clock import Clock, parse_timestamp
from trainer.kube.objects import ObjectKey, find_condition

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
    """When it was created or resumed and began to wait for its JobSet; None while it does not wait."""
    running_since: float | None = None
    """When it was Running for the first time. Defaults to never."""
    jobset_created_at: float | None = None
    """When the JobSet that it awaits was created, which the status does not show yet. Defaults to never."""

    def got_jobset(self, _: float = 0) -> None:
        """Record that its JobSet exists and the status shows it."""
        self.awaits_jobset_since = self.jobset_created_at = None

    def ran(self, at: float) -> None:
        """Record that it is Running."""
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
        """Handle a TrainJob that was added to the cache; `initial` if the first list had it."""
        if summary.state in _ENDS:
            return
        now = self._clock.monotonic()
        age = self._age(summary.created)
        if not initial and age < _LATE:
            age = 0.0
        begun = now - age
        life = self._lives[obj.uid] = Life(begun, summary.is_suspended, awaits_jobset_since=begun)
        status = obj.get("status") or {}
        if summary.state == UNKNOWN and (jobs := status.get("jobsStatus")):
            # The released manager has made it, which does not say when it ran first.
            life.got_jobset()
            if any(job.get(count) for job in jobs for count in ("active", "ready", "succeeded", "failed")):
                life.ran(begun)
        if summary.state in {UNKNOWN, EXTERNAL}:
            return
        if _since(status, ConditionType.CREATED) is not None:
            life.got_jobset()
        ran = _ran_since(status, summary.state)
        if ran is not None:
            life.ran(now - self._age(ran))

    def on_update(self, uid: str, summary: Summary) -> None:
        """Handle a changed TrainJob."""
        life = self._lives.get(uid)
        if life is None:
            return
        if summary.state in _ENDS:
            del self._lives[uid]
            return
        if summary.state in _MADE:  # by whichever replica leads
            life.got_jobset()
        if life.is_suspended and not summary.is_suspended:
            life.awaits_jobset_since, life.jobset_created_at = self._clock.monotonic(), None
        life.is_suspended = summary.is_suspended
        if summary.state == State.RUNNING:
            life.ran(self._clock.monotonic())

    def on_delete(self, uid: str) -> None:
        """Handle a deleted TrainJob."""
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
    found = find_condition({"status": status}, condition_type)
    if found is None or (must_hold and found.get("status") != "True") or not found.get("lastTransitionTime"):
        return None
    return parse_timestamp(found["lastTransitionTime"])


UNKNOWN = "Unknown"
"""State of a TrainJob without status."""
EXTERNAL = "External"
"""State of a TrainJob without status that another controller manages (`spec.managedBy`)."""


class _RuntimeRef(msgspec.Struct, gc=False):
    name: str = ""
    kind: str | None = None


class _Spec(msgspec.Struct, gc=False, rename="camel"):
    runtime_ref: _RuntimeRef | None = None
    suspend: bool | None = None
    managed_by: str | None = None


class _Condition(msgspec.Struct, gc=False):
    type: str
    status: str
    reason: str = ""


class _Status(msgspec.Struct, gc=False):
    state: str | None = None
    conditions: msgspec.Raw = msgspec.Raw(b"[]")
    """Decoded only if the state is Pending."""


class _Metadata(msgspec.Struct, gc=False, rename="camel"):
    creation_timestamp: datetime | None = None


class _TrainJob(msgspec.Struct, gc=False):
    metadata: _Metadata
    spec: _Spec | None = None
    status: _Status | None = None


_decoder = msgspec.json.Decoder(_TrainJob)
_conditions: msgspec.json.Decoder[list[_Condition] | None] = msgspec.json.Decoder(list[_Condition] | None)


class Summary(msgspec.Struct, frozen=True, gc=False):
    """What metrics count of a TrainJob."""

    runtime: str
    """Key of the runtime as text; "" if it cannot be read."""
    state: str
    is_suspended: bool
    created: datetime | None
    """None if it cannot be read."""
    pending: str = ""
    """Reason of the condition Pending; "" if no pod waits."""

    @classmethod
    def of(cls, obj: CachedObject) -> Summary:
        """Read a TrainJob; fields that an older schema accepted and that cannot be decoded count as absent."""
        try:
            seen = _decoder.decode(obj.raw)
        except msgspec.ValidationError:
            return cls("", UNKNOWN, is_suspended=False, created=None)
        spec, status = seen.spec or _Spec(), seen.status or _Status()
        runtime = "" if spec.runtime_ref is None else _key(spec.runtime_ref, obj.key.namespace)
        is_ours = (spec.managed_by or TRAIN_JOB_CONTROLLER) == TRAIN_JOB_CONTROLLER
        state = intern(status.state or (UNKNOWN if is_ours else EXTERNAL))
        pending = intern(_pending_reason(status)) if state == State.PENDING else ""
        return cls(intern(runtime), state, bool(spec.suspend), seen.metadata.creation_timestamp, pending)


def _pending_reason(status: _Status) -> str:
    try:
        conditions = _conditions.decode(status.conditions) or ()
    except msgspec.ValidationError:
        return ""
    for condition in conditions:
        if condition.type == ConditionType.PENDING and condition.status == "True":
            return condition.reason
    return ""


def _key(ref: _RuntimeRef, namespace: str) -> str:
    is_for_all = (ref.kind or CLUSTER_TRAINING_RUNTIMES.kind) == CLUSTER_TRAINING_RUNTIMES.kind
    return str(ObjectKey("" if is_for_all else namespace, ref.name))
