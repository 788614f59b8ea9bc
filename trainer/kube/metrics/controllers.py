"""Series of controllers and of their work queues.

What lies in a queue and what is being worked on is counted when it is scraped, instead of by a timer each 500 ms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from trainer.kube.metrics import Metrics
from trainer.kube.metrics.histograms import RECONCILE, WORK, QuickHistogram

MAX_PRIORITIES = 25
"""So many values of the label `priority` per queue; keys of further ones are counted under `OTHER_PRIORITIES`."""

OTHER_PRIORITIES = "exceeded_cardinality_limit"

_QUEUE_LABELS = ("name", "controller")
"""Both have the same value, as in controller-runtime, whose dashboards ask for either."""


class ControllerSeries:
    """Reconciles and workers, by controller."""

    def __init__(self, registry: CollectorRegistry) -> None:
        prefix = "controller_runtime"
        counter = partial(Counter, labelnames=["controller"], registry=registry)
        gauge = partial(Gauge, labelnames=["controller"], registry=registry)
        self.reconciles = Counter(
            f"{prefix}_reconcile_total", "Reconciles by result.", ["controller", "result"], registry=registry
        )
        self.reconcile_errors = counter(f"{prefix}_reconcile_errors_total", "Reconciles that failed.")
        self.terminal_errors = counter(
            f"{prefix}_terminal_reconcile_errors_total", "Reconciles that failed and are not retried."
        )
        self.panics = counter(
            f"{prefix}_reconcile_panics_total",
            "Reconciles that raised what no request and no TerminalError raises: mistakes in their code.",
        )
        self.reconcile_seconds = QuickHistogram(
            f"{prefix}_reconcile_time_seconds",
            "Duration of reconciles.",
            ["controller"],
            buckets=RECONCILE,
            registry=registry,
        )
        self.max_concurrent_reconciles = gauge(
            f"{prefix}_max_concurrent_reconciles", "Number of workers that the controller may use."
        )
        self.active_workers = gauge(f"{prefix}_active_workers", "Number of workers that reconcile now.")


class ControllerMetrics:
    """Series of one controller with their labels bound, which halves the cost of an update.

    They are present with value 0 from now on, so that `rate()` sees the first increase.
    """

    def __init__(self, metrics: Metrics, name: str) -> None:
        series = metrics.series(ControllerSeries)
        self.successes = series.reconciles.labels(name, "success")
        self.requeues_after = series.reconciles.labels(name, "requeue_after")
        self.requeues = series.reconciles.labels(name, "requeue")
        self._error_results = series.reconciles.labels(name, "error")
        self._errors = series.reconcile_errors.labels(name)
        self.terminal_errors = series.terminal_errors.labels(name)
        self.panics = series.panics.labels(name)
        self.seconds = series.reconcile_seconds.labels(name)
        self.max_concurrent_reconciles = series.max_concurrent_reconciles.labels(name)
        self.active_workers = series.active_workers.labels(name)

    def count_error(self) -> None:
        """Count a failed reconcile."""
        self._errors.inc()
        self._error_results.inc()


class Observed(Protocol):
    """The state of a queue that the gauges read at a scrape, possibly from another thread."""

    def depths(self) -> Mapping[int, int]:
        """Number of keys that are ready or to be processed again, by priority."""

    def ages(self) -> Sequence[float]:
        """How many seconds each key has been processed."""


class QueueSeries:
    """Work queues by name."""

    def __init__(self, registry: CollectorRegistry) -> None:
        counter = partial(Counter, labelnames=_QUEUE_LABELS, registry=registry)
        gauge = partial(Gauge, labelnames=_QUEUE_LABELS, registry=registry)
        histogram = partial(QuickHistogram, labels=_QUEUE_LABELS, buckets=WORK, registry=registry)
        self.adds = counter("workqueue_adds_total", "Keys added.")
        self.retries = counter("workqueue_retries_total", "Keys added with a delay.")
        self.queue_seconds = histogram(
            "workqueue_queue_duration_seconds", "Time for which a key is ready before it is handed out."
        )
        self.work_seconds = histogram("workqueue_work_duration_seconds", "Time for which a key is processed.")
        self.unfinished_seconds = gauge(
            "workqueue_unfinished_work_seconds",
            "Sum of the times for which keys are being processed; it grows when workers are stuck.",
        )
        self.longest_seconds = gauge(
            "workqueue_longest_running_processor_seconds",
            "Time for which the key that takes longest is being processed.",
        )
        self.depths = _Depths(registry)


class QueueMetrics:
    """Series of one queue with their labels bound, present from now on."""

    def __init__(self, metrics: Metrics, name: str) -> None:
        series, labels = metrics.series(QueueSeries), (name, name)
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
        self._depths.queues[self._name] = queue, {0}


class _Depths(Collector):
    """The gauge `workqueue_depth`, whose labels follow from what the queues hold."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.queues: dict[str, tuple[Observed, set[int]]] = {}
        """By name, with the priorities that have a label value of their own."""
        registry.register(self)

    def describe(self) -> Iterator[GaugeMetricFamily]:
        yield GaugeMetricFamily(
            "workqueue_depth", "Keys that are ready or to be processed again.", labels=(*_QUEUE_LABELS, "priority")
        )

    def collect(self) -> Iterator[GaugeMetricFamily]:
        (family,) = self.describe()
        for name, (queue, known) in tuple(self.queues.items()):
            for priority, count in _depths(queue, known).items():
                family.add_metric((name, name, priority), count)
        yield family


def _depths(queue: Observed, known: set[int]) -> dict[str, int]:
    depths = {str(priority): 0 for priority in sorted(known)}
    for priority, count in sorted(queue.depths().items()):
        if len(known) < MAX_PRIORITIES:
            known.add(priority)
        label = str(priority) if priority in known else OTHER_PRIORITIES
        depths[label] = depths.get(label, 0) + count
    return depths
