"""Series of events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Counter, Gauge

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

DROP_REASONS = ("limited", "queue_full", "refused", "unreachable", "stopped")


class EventSeries:
    """Series of recorded events, which controller-runtime does not have."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.recorded = Counter("trainer_kube_events_recorded_total", "Events that were recorded.", registry=registry)
        self.pending = Gauge("trainer_kube_events_pending", "Events that wait to be written.", registry=registry)
        written = Counter(
            "trainer_kube_events_written_total",
            "Events that were created, or patched with a higher count.",
            ["operation"],
            registry=registry,
        )
        dropped = Counter(
            "trainer_kube_events_dropped_total", "Writes of events that were given up.", ["reason"], registry=registry
        )
        self.created = written.labels("create")
        self.patched = written.labels("patch")
        self.dropped = {reason: dropped.labels(reason) for reason in DROP_REASONS}
