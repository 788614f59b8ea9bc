"""Series of TrainJobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from trainer.api.trainjob_status import State
from trainer.kube.metrics.cardinality import LIMIT, BoundedCounter, bounded_counts

_MINUTE, _HOUR, _DAY = 60, 3600, 86400

_TO_JOBSET = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, _MINUTE, 5 * _MINUTE, _HOUR)
"""Buckets for the time to the JobSet: milliseconds normally, minutes if something must be fixed first."""

_IN_QUEUE = (
    1, 2, 5, 10, 30, _MINUTE, 2 * _MINUTE, 5 * _MINUTE, 10 * _MINUTE, 30 * _MINUTE,
    _HOUR, 2 * _HOUR, 6 * _HOUR, 12 * _HOUR, _DAY, 3 * _DAY, 7 * _DAY,
)  # fmt: skip

_RUNNING = (
    10, 30, _MINUTE, 5 * _MINUTE, 15 * _MINUTE, 30 * _MINUTE, _HOUR, 2 * _HOUR, 6 * _HOUR, 12 * _HOUR,
    _DAY, 2 * _DAY, 4 * _DAY, 7 * _DAY, 14 * _DAY, 28 * _DAY,
)  # fmt: skip

_FOLDED = (True, True, False)
"""Whether namespace, runtime and framework become `OTHER` beyond the limit; frameworks are few."""


_ENDS = (State.COMPLETE.value, State.FAILED.value)

_EVERY_REPLICA = "Every replica shows all of them: take the max over replicas, by the other labels."

_FAILURES = ("FailedJobs", "ReachedMaxRestarts")
"""The most frequent reasons: a Job of the JobSet has failed, for the first time or after its last restart."""


class JobLabels(NamedTuple):
    """Labels of the series of TrainJobs."""

    namespace: str
    runtime: str
    """Name, of a TrainingRuntime with namespace: `torch-distributed`, `team-a/finetune`; "none" if there is none."""
    framework: str
    """Label trainer.kubeflow.org/framework of the runtime, if a ClusterTrainingRuntime has the same, or "none"."""


class TrainJobSeries:
    """The series of TrainJobs."""

    def __init__(self, registry: CollectorRegistry, *, limit: int = LIMIT) -> None:
        def counter(name: str, text: str, *more: str) -> BoundedCounter:
            labels = (*JobLabels._fields, *more)
            metric = Counter(f"trainer_trainjobs_{name}_total", text, labels, registry=registry)
            return BoundedCounter(metric, (*_FOLDED, *(True for _ in more)), limit)

        def histogram(name: str, text: str, labels: Sequence[str], buckets: Sequence[float]) -> Histogram:
            return Histogram(f"trainer_trainjob_{name}_seconds", text, labels, buckets=buckets, registry=registry)

        self.population = ObservedGauge(
            registry,
            "trainer_trainjobs",
            "TrainJobs in the cache of this replica by state: that of their status; without one, Unknown, or External "
            "where spec.managedBy names somebody else.",
            dict(zip((*JobLabels._fields, "state"), (*_FOLDED, False), strict=True)),
            limit,
        )
        self.pending = ObservedGauge(
            registry,
            "trainer_trainjob_status_pending_reason",
            "TrainJobs in state Pending by the reason of their condition Pending.",
            {"namespace": True, "reason": True},
            limit,
        )
        self.info = ObservedGauge(
            registry,
            "trainer_trainjob_info",
            "1 for each of the TrainJobs of a namespace whose state changed last, up to 50, those that have not ended "
            "first.",
            {"namespace": True, "trainjob": True, "runtime": True, "framework": False, "state": False},
            limit,
        )
        self.created = counter("created", "TrainJobs that got their first status.")
        self.completed = counter("completed", "TrainJobs that became Complete.")
        self.failed = counter("failed", "TrainJobs that became Failed, by the reason of the condition.", "reason")
        self.to_jobset = histogram(
            "time_to_jobset",
            "Time from the creation of a TrainJob, or its resumption, until its JobSet was in place.",
            ("framework",),
            _TO_JOBSET,
        )
        self.in_queue = histogram(
            "queue",
            "Time from the creation of a TrainJob until it was Running for the first time, suspensions included.",
            ("framework",),
            _IN_QUEUE,
        )
        self.running = histogram(
            "run",
            "Time for which a TrainJob that has ended was there since it was Running for the first time.",
            ("framework", "result"),
            _RUNNING,
        )

        self._counters = (self.created, self.completed, self.failed)
        self._expected: set[JobLabels] = set()

    def expect(self, group: JobLabels) -> None:
        """Expose the series of this group with 0: otherwise `increase()` misses the first event."""
        if group in self._expected:
            return
        self._expected.add(group)
        self.created.labels(*group)
        self.completed.labels(*group)
        for reason in _FAILURES:
            self.failed.labels(*group, reason)
        self.to_jobset.labels(group.framework)
        self.in_queue.labels(group.framework)
        for end in _ENDS:
            self.running.labels(group.framework, end)

    def remove_stale(self, groups: AbstractSet[tuple[str, str]]) -> None:
        """Remove the series that have not changed since the last call and belong to no existing group."""
        self._expected.clear()
        for counter in self._counters:
            counter.remove_stale(lambda values: values[:2] in groups)


class ObservedGauge(Collector):
    """A gauge whose values are computed at each scrape, possibly in another thread.

    `labels` says which of them become `OTHER` beyond the limit of label sets.
    """

    def __init__(
        self, registry: CollectorRegistry, name: str, text: str, labels: Mapping[str, bool], limit: int
    ) -> None:
        self._name = name
        self._text = f"{text} {_EVERY_REPLICA}"
        self._labels = labels
        self._limit = limit
        self._count: Callable[[], Mapping[tuple[str, ...], int]] = dict
        registry.register(self)

    def observe(self, count: Callable[[], Mapping[tuple[str, ...], int]]) -> None:
        """Set the function that returns the values by label values."""
        self._count = count

    def describe(self) -> list[GaugeMetricFamily]:
        """Name, help and labels."""
        return [GaugeMetricFamily(self._name, self._text, labels=tuple(self._labels))]

    def collect(self) -> list[GaugeMetricFamily]:
        """The current values; label sets beyond the limit are folded."""
        [family] = self.describe()
        for values, count in bounded_counts(self._count(), tuple(self._labels.values()), self._limit).items():
            family.add_metric(values, count)
        return [family]
