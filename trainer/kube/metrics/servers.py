"""Series of the HTTP servers of this process: health, metrics and webhooks, and of the certificates that they show."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge

from trainer.kube.metrics.histograms import WORK, QuickHistogram

DROP_REASONS = ("handshake", "slow_head", "slow_request", "idle", "large_head", "pipelining", "malformed", "crowded")
"""Why a server ends a connection: see `trainer.kube.serving.connection`."""


class HttpServerSeries:
    """Answers and connections, by server."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = Counter(
            "trainer_kube_http_requests_total",
            "Requests to an HTTP server of this process by status; those that are no HTTP are connections_dropped.",
            ["server", "code"],
            registry=registry,
        )
        self.connections = Gauge(
            "trainer_kube_http_connections",
            "Open connections to an HTTP server of this process.",
            ["server"],
            registry=registry,
        )
        self.dropped = Counter(
            "trainer_kube_http_connections_dropped_total",
            "Connections that an HTTP server of this process has ended, by reason.",
            ["server", "reason"],
            registry=registry,
        )

    def for_server(self, name: str) -> HttpServerMetrics:
        """The series of one server, present with value 0 from now on so that `rate()` sees the first increase."""
        return HttpServerMetrics(self, name)


class HttpServerMetrics:
    """Series of one server with their labels bound."""

    def __init__(self, series: HttpServerSeries, name: str) -> None:
        self._requests, self._name = series.requests, name
        self._requests.labels(name, "200")
        self.connections = series.connections.labels(name)
        self.dropped = {reason: series.dropped.labels(name, reason) for reason in DROP_REASONS}

    def answered(self, code: int) -> None:
        """A request was answered with this status."""
        self._requests.labels(self._name, str(code)).inc()


class WebhookSeries:
    """Admission requests by webhook, as in controller-runtime: label `webhook` is the path."""

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
            buckets=WORK,
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
        self._requests, self._path = series.requests, path
        for code in ("200", "500"):
            self._requests.labels(path, code)
        self.latency_seconds = series.latency_seconds.labels(path)
        self.in_flight = 0
        """Requests that are being answered."""
        series.in_flight.labels(path).set_function(lambda: self.in_flight)
        self.panics = series.panics

    def answered(self, code: int) -> None:
        """A request was answered with this status."""
        self._requests.labels(self._path, str(code)).inc()


class CertificateSeries:
    """How often the files of serving certificates were read, as in controller-runtime's certificate watcher."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.reads = Counter(
            "certwatcher_read_certificate_total", "Times that certificate files were read.", registry=registry
        )
        self.errors = Counter(
            "certwatcher_read_certificate_errors_total",
            "Times that certificate files were read and could not be used: the old ones stay in use.",
            registry=registry,
        )


class ExpirySeries:
    """When the certificates expire that the servers of this process show; nothing is shown before there is one."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.expiry = Gauge(
            "trainer_kube_certificate_expiration_timestamp_seconds",
            "When the certificate that a server of this process shows expires, in seconds since 1970.",
            ["server"],
            registry=registry,
        )

    def of(self, server: str) -> Callable[[float], None]:
        """Takes the time at which the certificate of a server expires."""
        return lambda seconds: self.expiry.labels(server).set(seconds)
