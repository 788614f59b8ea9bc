"""Series of the HTTP servers of this process: health, metrics and webhooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Counter, Gauge

if TYPE_CHECKING:
    from collections.abc import Callable

    from prometheus_client import CollectorRegistry

DROP_REASONS = ("handshake", "slow_head", "slow_request", "idle", "large_head", "pipelining", "malformed", "crowded")
"""Why a server ends a connection: see `trainer.kube.serving.connection`."""


class HttpServerSeries:
    """What servers answer, and which connections they put up with, by server."""

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
        self._name = name
        self._series = series
        self._requests: dict[int, Counter] = {}
        self._connections = series.connections.labels(name)
        self.dropped = {reason: series.dropped.labels(name, reason) for reason in DROP_REASONS}
        self._bind(200)

    def answered(self, code: int) -> None:
        """A request was answered with this status."""
        self._bind(code).inc()

    def observe(self, connections: Callable[[], float]) -> None:
        """Have the gauge ask when it is read."""
        self._connections.set_function(connections)

    def _bind(self, code: int) -> Counter:
        if code not in self._requests:
            self._requests[code] = self._series.requests.labels(self._name, str(code))
        return self._requests[code]
