"""Series of TrainJobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from prometheus_client import Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from trainer.kube.metrics.cardinality import LIMIT, OTHER, BoundedCounter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from prometheus_client import CollectorRegistry

_MINUTE, _HOUR, _DAY = 60, 3600, 86400

_TO_JOBSET = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, _MINUTE, 5 * _MINUTE, _HOUR)
"""Milliseconds where all is well, minutes where something must be mended first."""

_IN_QUEUE = (
    1, 2, 5, 10, 30, _MINUTE, 2 * _MINUTE, 5 * _MINUTE, 10 * _MINUTE, 30 * _MINUTE,
    _HOUR, 2 * _HOUR, 6 * _HOUR, 12 * _HOUR, _DAY, 3 * _DAY, 7 * _DAY,
)  # fmt: skip

_RUNNING = (
    10, 30, _MINUTE, 5 * _MINUTE, 15 * _MINUTE, 30 * _MINUTE, _HOUR, 2 * _HOUR, 6 * _HOUR, 12 * _HOUR,
    _DAY, 2 * _DAY, 4 * _DAY, 7 * _DAY, 14 * _DAY, 28 * _DAY,
)  # fmt: skip

_FOLDED = (True, True, False)
"""Of namespace, runtime and framework; the last are few, and worth telling apart to the end."""


_FAILED_JOBS = "FailedJobs"
"""Why JobSets mostly fail: a Job of theirs has, and no failure policy says more."""


class Group(NamedTuple):
    """What TrainJobs are told apart by."""

    namespace: str
    runtime: str
    """A name, with the namespace of a TrainingRuntime before it: `torch-distributed`, `team-a/finetune`."""
    framework: str
    """Label trainer.kubeflow.org/framework of the runtime, or "none"."""


class TrainJobSeries:
    """All series of the controller of TrainJobs beside those of every controller.

    Args:
        registry: where they are registered.
        limit: label sets of one metric. Default: 2000; see `trainer.kube.metrics.cardinality`.
    """

    def __init__(self, registry: CollectorRegistry, *, limit: int = LIMIT) -> None:
        def counter(name: str, text: str, *more: str) -> BoundedCounter:
            labels = (*Group._fields, *more)
            metric = Counter(f"trainer_trainjobs_{name}_total", text, labels, registry=registry)
            return BoundedCounter(metric, (*_FOLDED, *(True for _ in more)), limit)

        def histogram(name: str, text: str, labels: Sequence[str], buckets: Sequence[float]) -> Histogram:
            return Histogram(f"trainer_trainjob_{name}_seconds", text, labels, buckets=buckets, registry=registry)

        self.population = Population(registry, limit=limit)
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

    def expect(self, group: Group) -> None:
        """Show with 0 how TrainJobs of this group may end: `rate()` and `increase()` do not see the first otherwise."""
        self.completed.labels(*group)
        self.failed.labels(*group, _FAILED_JOBS)


class Population(Collector):
    """The gauge `trainer_trainjobs`, whose values are asked for when it is scraped, possibly by another thread."""

    def __init__(self, registry: CollectorRegistry, *, limit: int = LIMIT) -> None:
        self._limit = limit
        self._count: Callable[[], Mapping[tuple[Group, str], int]] = dict
        registry.register(self)

    def observe(self, count: Callable[[], Mapping[tuple[Group, str], int]]) -> None:
        """Have the gauge ask here how many TrainJobs of each group are in which state."""
        self._count = count

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Name, help and labels."""
        yield GaugeMetricFamily(
            "trainer_trainjobs",
            "TrainJobs in the cache of this replica by state: that of their status; without one, Unknown, or External "
            "where spec.managedBy names somebody else. Every replica shows all of them: take the max over "
            "replicas, by the other labels.",
            labels=(*Group._fields, "state"),
        )

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The present numbers; those beyond the limit of label sets together."""
        (family,) = self.describe()
        counts: dict[tuple[Group, str], int] = {}
        for (group, state), count in self._count().items():
            label_set = (group, state) if len(counts) < self._limit else (Group(OTHER, OTHER, group.framework), state)
            counts[label_set] = counts.get(label_set, 0) + count
        for (group, state), count in counts.items():
            family.add_metric((*group, state), count)
        yield family
