"""Series of what a process has one of: its event loop, its event sender, and its place in an election."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from trainer.kube.metrics import Metrics

_LAG_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

EVENT_DROP_REASONS = ("limited", "queue_full", "refused", "unreachable", "stopped")


class LoopSeries:
    """How late the event loop runs what is due."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.lag_seconds = Histogram(
            "trainer_kube_event_loop_lag_seconds",
            "How much later than due the event loop ran a timer; sampled at a fixed interval.",
            buckets=_LAG_BUCKETS,
            registry=registry,
        )
        self.stalls = Counter(
            "trainer_kube_event_loop_stalls_total",
            "How often the event loop stood still for so long that a warning was logged.",
            registry=registry,
        )


class EventSeries:
    """Recorded events, which controller-runtime does not count."""

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
        self.dropped = {reason: dropped.labels(reason) for reason in EVENT_DROP_REASONS}


class ElectionSeries:
    """Series of the leader, and of renewals that took more than one request, by the name of the lease."""

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


class ElectionMetrics:
    """Series of one lease, present with value 0 from now on."""

    def __init__(self, metrics: Metrics, name: str) -> None:
        series = metrics.series(ElectionSeries)
        self.master_status = series.master_status.labels(name)
        self.slow_path = series.slow_path.labels(name)
