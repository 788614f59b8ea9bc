"""Counts what happens to TrainJobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS, TrainJob
from trainer.api.trainjob_status import ConditionType, State, TrainJobStatus
from trainer.controllers.metrics.milestones import Life, Milestones
from trainer.controllers.metrics.series import JobLabels, TrainJobSeries
from trainer.controllers.metrics.state_counts import Frameworks, StateCounts
from trainer.framework.runtimes.runtimes import runtime_place
from trainer.framework.status.conditions import Conditions
from trainer.framework.status.status import is_finished
from trainer.kube.manager.manager import Manager
from trainer.kube.selection import Selection

Step: TypeAlias = tuple[Callable[[float], None], float]
"""A method of a metric, and its argument, to call once a status is stored."""


_REMOVAL_INTERVAL = 1800.0
"""Seconds between two removals of series of deleted objects; every scrape sees the last values before that."""


class TrainJobMetrics:
    """Handles the events of the informers of TrainJobs and runtimes; constructed before the manager runs."""

    def __init__(self, manager: Manager, namespace: str | None = None) -> None:
        self._clock = manager.clock
        self._series = manager.metrics.series(TrainJobSeries)
        self._milestones = Milestones(manager.clock)
        self._frameworks = Frameworks()
        self._state_counts = state_counts = StateCounts(self._frameworks, self._milestones)
        self._removes_stale_at = self._clock.monotonic() + _REMOVAL_INTERVAL
        self._series.population.observe(state_counts.count)
        self._series.pending.observe(state_counts.pending)
        self._series.info.observe(state_counts.latest)
        manager.informer(TRAIN_JOBS, Selection(namespace)).add_handler(state_counts)
        manager.informer(TRAINING_RUNTIMES, Selection(namespace)).add_handler(self._frameworks)
        manager.informer(CLUSTER_TRAINING_RUNTIMES).add_handler(self._frameworks)

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
            self._series.remove_stale(self._state_counts.groups())

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
