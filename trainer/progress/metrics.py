"""Prometheus series of the progress controller; none has a label by TrainJob, whose number is unbounded."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from trainer.kube.podlogs.container_log import Interruption, LogObserver
from trainer.progress.protocol import DROPPED_LIMIT

_LAG = (0.1, 0.25, 0.5, 1, 2, 3, 4, 5, 6, 7.5, 10, 15, 30, 60, 120, 300, 600)
"""Buckets in seconds: fine around the five seconds between two writes, coarse for what is read after a restart."""

WRITE_RESULTS = ("success", "error")
"""Label `result` of status writes."""


class ProgressSeries(LogObserver):
    """All series of the progress controller, from `manager.metrics.series(ProgressSeries)`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, text: str) -> Counter:
            return Counter(f"trainer_progress_{name}_total", text, registry=registry)

        self.active_streams = Gauge(
            "trainer_progress_active_streams", "Logs that are being followed.", registry=registry
        )
        self.read_lines = counter("lines", "Lines of logs read, whatever is in them.")
        self.messages = counter("messages", "Messages about progress that were taken.")
        self.rejected_messages = counter("rejected_messages", "Tagged lines that are no message.")
        self.dropped_values = counter(
            "dropped_values", f"Values of messages that break a rule; at most {DROPPED_LIMIT} of a message are counted."
        )
        self.skipped_lines = counter("skipped_lines", "Lines that were too long to be read.")
        self.reconnects = Counter(
            "trainer_progress_reconnects_total",
            "Times that a log was requested again after its connection had ended, by reason.",
            ["reason"],
            registry=registry,
        )
        for reason in Interruption:
            self.reconnects.labels(reason)
        self.lag_seconds = Histogram(
            "trainer_progress_lag_seconds",
            "Time from a message in the log to the status that shows it.",
            buckets=_LAG,
            registry=registry,
        )
        self.status_writes = Counter(
            "trainer_progress_status_writes_total", "Writes of progress, by result.", ["result"], registry=registry
        )
        for result in WRITE_RESULTS:
            self.status_writes.labels(result)
        self.stalls = counter("stalls", "Times that a training was found to make no progress.")
        self.stalled_jobs = Gauge(
            "trainer_progress_stalled_jobs", "Trainings that make no progress at the moment.", registry=registry
        )

    def connected(self) -> None:
        """Count an open stream."""
        self.active_streams.inc()

    def disconnected(self) -> None:
        """Count a closed stream."""
        self.active_streams.dec()

    def lines(self, count: int) -> None:
        """Count lines that were read."""
        self.read_lines.inc(count)

    def skipped(self) -> None:
        """Count a line that was too long."""
        self.skipped_lines.inc()
