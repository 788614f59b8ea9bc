"""Prometheus metrics of the machinery, with the names and buckets of controller-runtime so that its dashboards work."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_RECONCILE_BUCKETS = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9,
    1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
)  # fmt: skip

RESULTS = ("success", "requeue_after", "error")


class Metrics:
    """All series of one manager, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.reconciles = Counter(
            "controller_runtime_reconcile_total",
            "Reconciles by result.",
            ["controller", "result"],
            registry=self.registry,
        )
        self.reconcile_errors = self._counter("controller_runtime_reconcile_errors_total", "Reconciles that failed.")
        self.terminal_errors = self._counter(
            "controller_runtime_terminal_reconcile_errors_total", "Reconciles that failed and are not retried."
        )
        self.reconcile_timeouts = self._counter(
            "controller_runtime_reconcile_timeouts_total", "Reconciles that took longer than the reconcile timeout."
        )
        self.reconcile_seconds = Histogram(
            "controller_runtime_reconcile_time_seconds",
            "Duration of reconciles.",
            ["controller"],
            buckets=_RECONCILE_BUCKETS,
            registry=self.registry,
        )
        self.max_concurrent_reconciles = self._gauge(
            "controller_runtime_max_concurrent_reconciles", "Number of workers that the controller may use."
        )
        self.active_workers = self._gauge("controller_runtime_active_workers", "Number of workers that reconcile now.")

    def for_controller(self, name: str) -> ControllerMetrics:
        """The series of one controller, present with value 0 from now on so that `rate()` sees the first increase."""
        return ControllerMetrics(self, name)

    def _counter(self, name: str, text: str) -> Counter:
        return Counter(name, text, ["controller"], registry=self.registry)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(name, text, ["controller"], registry=self.registry)


class ControllerMetrics:
    """Series of one controller with the label already bound, which halves the cost of an update."""

    def __init__(self, metrics: Metrics, name: str) -> None:
        self.results = {result: metrics.reconciles.labels(name, result) for result in RESULTS}
        self.errors = metrics.reconcile_errors.labels(name)
        self.terminal_errors = metrics.terminal_errors.labels(name)
        self.timeouts = metrics.reconcile_timeouts.labels(name)
        self.seconds = metrics.reconcile_seconds.labels(name)
        self.max_concurrent_reconciles = metrics.max_concurrent_reconciles.labels(name)
        self.active_workers = metrics.active_workers.labels(name)
