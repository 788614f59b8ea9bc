"""Series of requests to the API server, as in client-go."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter

from trainer.kube.metrics import Metrics
from trainer.kube.metrics.histograms import REQUEST, QuickHistogram

NO_ANSWER = "<error>"
"""Label `code` of an attempt that got no answer; error texts would make too many series."""


class RequestSeries:
    """Requests and their time, and certificates that were replaced while the process ran."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = Counter(
            "rest_client_requests_total",
            "HTTP requests to the API server by status code; retries count.",
            ["code", "method", "host"],
            registry=registry,
        )
        self.seconds = QuickHistogram(
            "rest_client_request_duration_seconds",
            "Time from a request to its answer, with retries and their pauses; of a watch or a log, to its beginning.",
            ("verb", "host"),
            buckets=REQUEST,
            registry=registry,
        )
        self.tls_reloads = Counter(
            "trainer_kube_tls_reloads_total",
            "Times that changed certificate files were loaded (success) or not (error: the old ones stay in use).",
            ["result"],
            registry=registry,
        )


class RequestMetrics:
    """The series of one client."""

    def __init__(self, metrics: Metrics, host: str) -> None:
        self._host = host
        self._series = metrics.series(RequestSeries)
        self._answers: dict[tuple[str, int | None], Counter] = {}
        self._tls_reloads = {
            success: self._series.tls_reloads.labels("success" if success else "error") for success in (True, False)
        }

    def answered(self, method: str, code: int | None) -> None:
        """An attempt got this status code, or None when there was no answer."""
        counter = self._answers.get((method, code))
        if counter is None:
            label = NO_ANSWER if code is None else str(code)
            counter = self._answers[method, code] = self._series.requests.labels(label, method, self._host)
        counter.inc()

    def took(self, method: str, seconds: float) -> None:
        """A request has been answered, or given up, after so long."""
        self._series.seconds.labels(method, self._host).observe(seconds)

    def reloaded_tls(self, *, success: bool) -> None:
        """Changed certificate files were loaded, or found to be unusable."""
        self._tls_reloads[success].inc()
