"""Series of work queues.

Label `controller` repeats `name`, as in controller-runtime, whose dashboards ask for either. What lies in a queue and
what is being worked on is counted when it is scraped, instead of by a timer each 500 ms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from trainer.kube.metrics import buckets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from prometheus_client import CollectorRegistry

MAX_PRIORITIES = 25
"""So many values of the label `priority` per queue; keys of further ones are counted under `OTHER_PRIORITIES`."""

OTHER_PRIORITIES = "exceeded_cardinality_limit"

_LABELS = ("name", "controller")


class Observed(Protocol):
    """What the gauges ask of a queue when they are scraped, possibly from another thread."""

    def depths(self) -> Mapping[int, int]:
        """Number of keys that are ready or to be processed again, by priority."""

    def ages(self) -> Sequence[float]:
        """For each key that is being processed, since how many seconds."""


class QueueSeries:
    """Work queues by name."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.adds = Counter("workqueue_adds_total", "Keys added.", _LABELS, registry=registry)
        self.retries = Counter("workqueue_retries_total", "Keys added with a delay.", _LABELS, registry=registry)
        self.queue_seconds = Histogram(
            "workqueue_queue_duration_seconds",
            "Time for which a key is ready before it is handed out.",
            _LABELS,
            buckets=buckets.WORK,
            registry=registry,
        )
        self.work_seconds = Histogram(
            "workqueue_work_duration_seconds",
            "Time for which a key is processed.",
            _LABELS,
            buckets=buckets.WORK,
            registry=registry,
        )
        self.unfinished_seconds = Gauge(
            "workqueue_unfinished_work_seconds",
            "Sum of the times for which keys are being processed; it grows when workers are stuck.",
            _LABELS,
            registry=registry,
        )
        self.longest_seconds = Gauge(
            "workqueue_longest_running_processor_seconds",
            "Time for which the key that takes longest is being processed.",
            _LABELS,
            registry=registry,
        )
        self.depths = _Depths(registry)

    def for_queue(self, name: str) -> QueueMetrics:
        """The series of one queue, present from now on."""
        return QueueMetrics(self, name)


class QueueMetrics:
    """Series of one queue with their labels bound."""

    def __init__(self, series: QueueSeries, name: str) -> None:
        labels = (name, name)
        self.adds = series.adds.labels(*labels)
        self.retries = series.retries.labels(*labels)
        self.queue_seconds = series.queue_seconds.labels(*labels)
        self.work_seconds = series.work_seconds.labels(*labels)
        self._unfinished_seconds = series.unfinished_seconds.labels(*labels)
        self._longest_seconds = series.longest_seconds.labels(*labels)
        self._depths = series.depths
        self._name = name

    def observe(self, queue: Observed) -> None:
        """Have the gauges ask this queue."""
        self._unfinished_seconds.set_function(lambda: sum(queue.ages()))
        self._longest_seconds.set_function(lambda: max(queue.ages(), default=0.0))
        self._depths.observe(self._name, queue)


class _Depths(Collector):
    """The gauge `workqueue_depth`, whose labels follow from what the queues hold."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._queues: dict[str, Observed] = {}
        self._priorities: dict[str, set[int]] = {}
        registry.register(self)

    def observe(self, name: str, queue: Observed) -> None:
        self._queues[name] = queue
        self._priorities[name] = {0}

    def describe(self) -> Iterator[GaugeMetricFamily]:
        yield GaugeMetricFamily(
            "workqueue_depth", "Keys that are ready or to be processed again.", labels=(*_LABELS, "priority")
        )

    def collect(self) -> Iterator[GaugeMetricFamily]:
        (family,) = self.describe()
        for name, queue in tuple(self._queues.items()):
            for priority, count in self._depths(name, queue).items():
                family.add_metric((name, name, priority), count)
        yield family

    def _depths(self, name: str, queue: Observed) -> dict[str, int]:
        known = self._priorities[name]
        depths = {str(priority): 0 for priority in sorted(known)}
        for priority, count in sorted(queue.depths().items()):
            if len(known) < MAX_PRIORITIES:
                known.add(priority)
            label = str(priority) if priority in known else OTHER_PRIORITIES
            depths[label] = depths.get(label, 0) + count
        return depths
