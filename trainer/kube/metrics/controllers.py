"""Series of controllers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Counter, Gauge, Histogram

from trainer.kube.metrics import buckets

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry


class ControllerSeries:
    """Reconciles and workers, by controller."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self.reconciles = Counter(
            "controller_runtime_reconcile_total",
            "Reconciles by result.",
            ["controller", "result"],
            registry=self._registry,
        )
        self.reconcile_errors = self._counter("controller_runtime_reconcile_errors_total", "Reconciles that failed.")
        self.terminal_errors = self._counter(
            "controller_runtime_terminal_reconcile_errors_total", "Reconciles that failed and are not retried."
        )
        self.panics = self._counter(
            "controller_runtime_reconcile_panics_total",
            "Reconciles that raised what no request and no TerminalError raises: mistakes in their code.",
        )
        self.reconcile_timeouts = self._counter(
            "controller_runtime_reconcile_timeouts_total", "Reconciles that took longer than the reconcile timeout."
        )
        self.reconcile_seconds = Histogram(
            "controller_runtime_reconcile_time_seconds",
            "Duration of reconciles.",
            ["controller"],
            buckets=buckets.RECONCILE,
            registry=self._registry,
        )
        self.max_concurrent_reconciles = self._gauge(
            "controller_runtime_max_concurrent_reconciles", "Number of workers that the controller may use."
        )
        self.active_workers = self._gauge("controller_runtime_active_workers", "Number of workers that reconcile now.")

    def for_controller(self, name: str) -> ControllerMetrics:
        """The series of one controller, present with value 0 from now on so that `rate()` sees the first increase."""
        return ControllerMetrics(self, name)

    def _counter(self, name: str, text: str) -> Counter:
        return Counter(name, text, ["controller"], registry=self._registry)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(name, text, ["controller"], registry=self._registry)


class ControllerMetrics:
    """Series of one controller with their labels bound, which halves the cost of an update."""

    def __init__(self, series: ControllerSeries, name: str) -> None:
        self.successes = series.reconciles.labels(name, "success")
        self.requeues_after = series.reconciles.labels(name, "requeue_after")
        self.requeues = series.reconciles.labels(name, "requeue")
        self._error_results = series.reconciles.labels(name, "error")
        self._errors = series.reconcile_errors.labels(name)
        self.terminal_errors = series.terminal_errors.labels(name)
        self.panics = series.panics.labels(name)
        self.timeouts = series.reconcile_timeouts.labels(name)
        self.seconds = series.reconcile_seconds.labels(name)
        self.max_concurrent_reconciles = series.max_concurrent_reconciles.labels(name)
        self.active_workers = series.active_workers.labels(name)

    def count_error(self) -> None:
        """One more reconcile has failed."""
        self._errors.inc()
        self._error_results.inc()
