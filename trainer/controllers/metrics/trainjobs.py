"""Counts what happens to TrainJobs, and measures how long each stage takes.

Timestamps in objects have whole seconds, and the status does not say when a training first ran. So every replica
records when TrainJobs that have not ended were created, got their JobSet and first ran, and goes on with that when it
becomes the leader. What happened before the process started is estimated from the object: to a second, or, for a
running training, from when its Jobs were created or resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS, TrainJob
from trainer.api.trainjob_status import ConditionType, State, TrainJobStatus
from trainer.controllers.metrics.disruptions import DisruptedPods, DisruptionSeries
from trainer.controllers.metrics.series import JobLabels, TrainJobSeries
from trainer.controllers.metrics.state_counts import EXTERNAL, UNKNOWN, Frameworks, StateCounts, Summary
from trainer.framework.runtimes.runtimes import runtime_place
from trainer.framework.status.status import Conditions, is_finished
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.cache.informer import Informer
from trainer.kube.clock import Clock, parse_timestamp
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import find_condition
from trainer.kube.selection import Selection

Step: TypeAlias = tuple[Callable[[float], None], float]
"""A method of a metric, and its argument, to call once a status is stored."""


_REMOVAL_INTERVAL = 1800.0
"""Seconds between two removals of series of deleted objects; every scrape sees the last values before that."""


_LATE = 3.0
"""Seconds of age from which a new TrainJob counts as missed by the watch; less may be a difference of clocks."""

_RUN = frozenset({State.RUNNING.value, State.STALLED.value, State.RESTARTING.value})
_MADE = frozenset({State.CREATED.value, State.PENDING.value, State.STOPPING.value, *_RUN})
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
            # The Go manager has made it, and does not say when it ran first.
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


class TrainJobMetrics:
    """Handles the events of the informers of TrainJobs and runtimes; constructed before the manager runs."""

    def __init__(self, manager: Manager, namespace: str | None = None) -> None:
        self._clock = manager.clock
        self._series = manager.metrics.series(TrainJobSeries)
        self._disruptions = manager.metrics.series(DisruptionSeries)
        train_jobs = manager.informer(TRAIN_JOBS, Selection(namespace))
        self._disrupted_pods = DisruptedPods(
            self._disruptions, lambda: manager.is_leader, lambda key: train_jobs.lister.peek(key) is not None
        )
        self._milestones = Milestones(manager.clock)
        self._frameworks = Frameworks()
        self._state_counts = state_counts = StateCounts(self._frameworks)
        self._removes_stale_at = self._clock.monotonic() + _REMOVAL_INTERVAL
        self._series.population.observe(state_counts.count)
        self._series.pending.observe(state_counts.pending)
        self._series.info.observe(state_counts.latest)
        train_jobs.add_handler(self)
        manager.informer(TRAINING_RUNTIMES, Selection(namespace)).add_handler(self._frameworks)
        manager.informer(CLUSTER_TRAINING_RUNTIMES).add_handler(self._frameworks)

    def count_disruptions(self, pods: Informer) -> None:
        """Count the pods of an informer that are disrupted."""
        pods.add_handler(self._disrupted_pods)

    def on_add(self, obj: CachedObject, *, initial: bool) -> None:
        """Handle an added TrainJob."""
        summary = Summary.of(obj)
        self._state_counts.put(obj.key, summary)
        self._milestones.on_add(obj, summary, initial=initial)

    def on_update(self, old: CachedObject, new: CachedObject) -> None:
        """Handle a changed TrainJob."""
        if old is new:  # a resync
            return
        summary = Summary.of(new)
        self._state_counts.put(new.key, summary)
        self._milestones.on_update(new.uid, summary)

    def on_delete(self, obj: CachedObject, *, stale: bool) -> None:  # noqa: ARG002 - a handler is called so
        """Handle a deleted TrainJob."""
        self._state_counts.remove(obj.key)
        self._milestones.on_delete(obj.uid)

    def jobset_created(self, train_job: TrainJob) -> None:
        """Record that its JobSet was created; the status is written later."""
        life = self._milestones.of(train_job.metadata.uid or "")
        if life is not None and life.jobset_created_at is None:
            life.jobset_created_at = self._clock.monotonic()

    def expect(self, train_job: TrainJob) -> None:
        """Expose the series of its group with 0, before anything is counted."""
        self._series.expect(self._group(train_job))
        now = self._clock.monotonic()
        if now >= self._removes_stale_at:
            self._removes_stale_at = now + _REMOVAL_INTERVAL
            groups = self._state_counts.groups()
            self._series.remove_stale(groups)
            self._disruptions.remove_stale({namespace for namespace, _ in groups})

    def steps(self, train_job: TrainJob, status: TrainJobStatus) -> list[Step]:
        """What to count once this status is stored.

        It is determined before the write, since the watch event may arrive before the response and change the records.
        """
        if is_finished(train_job):
            return []  # it ended under another manager, or has been counted
        group = self._group(train_job)
        life = self._milestones.of(train_job.metadata.uid or "")
        before = train_job.status or TrainJobStatus()
        steps = [*self._counts(group, before, status)]
        if life is not None:
            steps += self._times(group.framework, life, before, status)
        return steps

    def _group(self, train_job: TrainJob) -> JobLabels:
        _, key = runtime_place(train_job)
        return JobLabels(train_job.metadata.namespace or "", *self._frameworks.labels_of(str(key)))

    def _counts(self, group: JobLabels, before: TrainJobStatus, status: TrainJobStatus) -> Iterator[Step]:
        if not before.conditions and not before.jobs_status:
            yield self._series.created.labels(*group).inc, 1
        if status.state is before.state:
            return
        if status.state is State.COMPLETE:
            yield self._series.completed.labels(*group).inc, 1
        elif status.state is State.FAILED:
            failed = Conditions.of(status).get(ConditionType.FAILED)
            yield self._series.failed.labels(*group, failed.reason if failed else "").inc, 1

    def _times(self, framework: str, life: Life, before: TrainJobStatus, status: TrainJobStatus) -> Iterator[Step]:
        now = self._clock.monotonic()
        if life.awaits_jobset_since is not None and _gets_jobset(before, status):
            made = now if life.jobset_created_at is None else life.jobset_created_at
            yield self._series.to_jobset.labels(framework).observe, made - life.awaits_jobset_since
            yield life.got_jobset, now
        if status.state is before.state:
            return
        if status.state is State.RUNNING and life.running_since is None:
            yield self._series.in_queue.labels(framework).observe, now - life.created
            yield life.ran, now
        elif status.state in {State.COMPLETE, State.FAILED} and life.running_since is not None:
            yield self._series.running.labels(framework, status.state.value).observe, now - life.running_since


def _gets_jobset(before: TrainJobStatus, status: TrainJobStatus) -> bool:
    old, new = Conditions.of(before), Conditions.of(status)
    if not new.is_true(ConditionType.CREATED):
        return False
    is_resumed = old.is_true(ConditionType.SUSPENDED) and new.is_false(ConditionType.SUSPENDED)
    return is_resumed or not old.is_true(ConditionType.CREATED)
