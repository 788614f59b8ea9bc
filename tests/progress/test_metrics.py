"""The series of progress."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from trainer.kube.podlogs.container_log import Interruption
from trainer.progress.metrics import ProgressSeries


def test_names_and_labels() -> None:
    """Everything is there from the start with value 0, and nothing has a label that grows with the number of jobs."""
    registry = CollectorRegistry()
    ProgressSeries(registry)
    samples = [sample for metric in registry.collect() for sample in metric.samples]
    shown = {
        (sample.name, *(f"{name}={value}" for name, value in sample.labels.items() if name != "le"))
        for sample in samples
        if not sample.name.endswith(("_created", "_bucket"))
    }
    assert shown == {
        ("trainer_progress_active_streams",),
        ("trainer_progress_lines_total",),
        ("trainer_progress_messages_total",),
        ("trainer_progress_rejected_messages_total",),
        ("trainer_progress_dropped_values_total",),
        ("trainer_progress_skipped_lines_total",),
        *(("trainer_progress_reconnects_total", f"reason={reason}") for reason in Interruption),
        ("trainer_progress_lag_seconds_count",),
        ("trainer_progress_lag_seconds_sum",),
        ("trainer_progress_status_writes_total", "result=success"),
        ("trainer_progress_status_writes_total", "result=error"),
        ("trainer_progress_stalls_total",),
        ("trainer_progress_stalled_jobs",),
    }
    assert {sample.value for sample in samples if not sample.name.endswith("_created")} == {0.0}
