"""Series of serving certificates: of their files, as in controller-runtime's certificate watcher, and of their end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Counter, Gauge

if TYPE_CHECKING:
    from collections.abc import Callable

    from prometheus_client import CollectorRegistry


class CertificateSeries:
    """How often the files of serving certificates were read, whether they had changed or not."""

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
