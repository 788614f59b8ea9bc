"""Series of certificate files, as in controller-runtime's certificate watcher."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Counter

if TYPE_CHECKING:
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
