"""Series of requests to the API server, as in client-go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Counter, Histogram

from trainer.kube.metrics import Metrics, buckets
from trainer.kube.metrics.quick_histogram import QuickHistogram

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from trainer.kube.metrics.quick_histogram import BoundHistogram

NO_ANSWER = "<error>"
"""Label `code` of an attempt that got no answer; error texts would make too many series."""


class RequestSeries:
    """What is always counted."""

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
            buckets=buckets.REQUEST,
            registry=registry,
        )
        self.tls_reloads = Counter(
            "trainer_kube_tls_reloads_total",
            "Times that changed certificate files were loaded (success) or not (error: the old ones stay in use).",
            ["result"],
            registry=registry,
        )


class RequestDetailSeries:
    """What is measured on request only: it is many series."""

    def __init__(self, registry: CollectorRegistry) -> None:
        verb_and_host = ("verb", "host")
        self.limited_seconds = Histogram(
            "rest_client_rate_limiter_duration_seconds",
            "Time that an attempt waited for the client's own rate limit.",
            verb_and_host,
            buckets=buckets.REQUEST,
            registry=registry,
        )
        self.resolution_seconds = Histogram(
            "rest_client_dns_resolution_duration_seconds",
            "Time to look up the address of the API server.",
            ["host"],
            buckets=buckets.REQUEST,
            registry=registry,
        )
        self.request_bytes = Histogram(
            "rest_client_request_size_bytes",
            "Size of request bodies.",
            verb_and_host,
            buckets=buckets.REQUEST_BYTES,
            registry=registry,
        )
        self.response_bytes = Histogram(
            "rest_client_response_size_bytes",
            "Size of the bodies of successful answers, streams left out.",
            verb_and_host,
            buckets=buckets.REQUEST_BYTES,
            registry=registry,
        )
        self.retries = Counter(
            "rest_client_request_retries_total",
            "Attempts that were followed by another one, by the status code that led to it.",
            ["code", "verb", "host"],
            registry=registry,
        )


class RequestMetrics:
    """The series of one client, whose labels are bound at the first use of a method and code."""

    def __init__(self, metrics: Metrics, host: str, *, detailed: bool) -> None:
        self._host = host
        self._series = metrics.series(RequestSeries)
        self._details = metrics.series(RequestDetailSeries) if detailed else None
        self._requests: dict[tuple[str, str], Counter] = {}
        self._seconds: dict[str, BoundHistogram] = {}
        self._verbs: dict[str, _VerbMetrics] = {}
        self._tls_reloads = {success: self._series.tls_reloads.labels(_result(success)) for success in (True, False)}

    @property
    def is_detailed(self) -> bool:
        """Whether more than the number of requests and their time is measured."""
        return self._details is not None

    def answered(self, method: str, code: int | None) -> None:
        """An attempt got this status code, or None when there was no answer."""
        key = (_code(code), method)
        if key not in self._requests:
            self._requests[key] = self._series.requests.labels(*key, self._host)
        self._requests[key].inc()

    def took(self, method: str, seconds: float) -> None:
        """A request has been answered, or given up, after so long."""
        if method not in self._seconds:
            self._seconds[method] = self._series.seconds.labels(method, self._host)
        self._seconds[method].observe(seconds)

    def retried(self, method: str, code: int | None) -> None:
        """An attempt with this outcome is followed by another one."""
        if self._details is not None:
            self._details.retries.labels(_code(code), method, self._host).inc()

    def reloaded_tls(self, *, success: bool) -> None:
        """Changed certificate files were loaded, or found to be unusable."""
        self._tls_reloads[success].inc()

    def resolved(self, host: str, seconds: float) -> None:
        """A host name was looked up."""
        if self._details is not None:
            self._details.resolution_seconds.labels(host).observe(seconds)

    def verb(self, method: str) -> _VerbMetrics | None:
        """The histograms of one method; None when they are switched off."""
        if self._details is None:
            return None
        if method not in self._verbs:
            self._verbs[method] = _VerbMetrics(self._details, method, self._host)
        return self._verbs[method]


class _VerbMetrics:
    def __init__(self, details: RequestDetailSeries, method: str, host: str) -> None:
        self.limited_seconds = details.limited_seconds.labels(method, host)
        self.request_bytes = details.request_bytes.labels(method, host)
        self.response_bytes = details.response_bytes.labels(method, host)


def _result(success: bool) -> str:
    return "success" if success else "error"


def _code(code: int | None) -> str:
    return NO_ANSWER if code is None else str(code)
