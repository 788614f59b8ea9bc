"""Series of leader election, by the name of the lease."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Counter, Gauge

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry


class ElectionSeries:
    """Who leads, and how often renewing took more than one request."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.master_status = Gauge(
            "leader_election_master_status",
            "1 while this process is the leader, 0 while it waits.",
            ["name"],
            registry=registry,
        )
        self.slow_path = Counter(
            "leader_election_slowpath_total",
            "Renewals that had to read the lease before they could write it.",
            ["name"],
            registry=registry,
        )

    def for_lease(self, name: str) -> ElectionMetrics:
        """The series of one lease, present with value 0 from now on."""
        return ElectionMetrics(self, name)


class ElectionMetrics:
    """Series of one lease."""

    def __init__(self, series: ElectionSeries, name: str) -> None:
        self.master_status = series.master_status.labels(name)
        self.slow_path = series.slow_path.labels(name)
