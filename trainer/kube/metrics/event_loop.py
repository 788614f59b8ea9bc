"""Series of the event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Counter, Histogram

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class LoopSeries:
    """How late the event loop runs what is due."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.lag_seconds = Histogram(
            "trainer_kube_event_loop_lag_seconds",
            "How much later than due the event loop ran a timer; sampled at a fixed interval.",
            buckets=_BUCKETS,
            registry=registry,
        )
        self.stalls = Counter(
            "trainer_kube_event_loop_stalls_total",
            "How often the event loop stood still for so long that a warning was logged.",
            registry=registry,
        )
