"""Series of the webhook server, as in controller-runtime: label `webhook` is the path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Counter, Gauge

from trainer.kube.metrics import buckets
from trainer.kube.metrics.quick_histogram import QuickHistogram

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry


class WebhookSeries:
    """Admission requests, by webhook."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = Counter(
            "controller_runtime_webhook_requests_total",
            "Admission requests by HTTP status; refusals are answers like others and count as 200, but a handler that "
            "failed counts as 500 and one that took too long as 504, although the API server gets a refusal.",
            ["webhook", "code"],
            registry=registry,
        )
        self.latency_seconds = QuickHistogram(
            "controller_runtime_webhook_latency_seconds",
            "Time from the head of an admission request to its answer.",
            ["webhook"],
            buckets=buckets.WORK,
            registry=registry,
        )
        self.in_flight = Gauge(
            "controller_runtime_webhook_requests_in_flight",
            "Admission requests that are being answered.",
            ["webhook"],
            registry=registry,
        )
        self.panics = Counter(
            "controller_runtime_webhook_panics_total",
            "Handlers that raised what no request to the API server raises: mistakes in their code.",
            registry=registry,
        )

    def for_webhook(self, path: str) -> WebhookMetrics:
        """The series of one webhook, present with value 0 from now on so that `rate()` sees the first increase."""
        return WebhookMetrics(self, path)


class WebhookMetrics:
    """Series of one webhook with their labels bound."""

    def __init__(self, series: WebhookSeries, path: str) -> None:
        self._path = path
        self._series = series
        self._requests = {code: series.requests.labels(path, str(code)) for code in (200, 500)}
        self.latency_seconds = series.latency_seconds.labels(path)
        self.in_flight = series.in_flight.labels(path)
        self.panics = series.panics

    def answered(self, code: int) -> None:
        """A request was answered with this status."""
        if code not in self._requests:
            self._requests[code] = self._series.requests.labels(self._path, str(code))
        self._requests[code].inc()
