"""What Prometheus gets to see."""

from __future__ import annotations

from trainer.kube.metrics import Metrics
from trainer.kube.metrics.exposition import Exposition


def test_created_series_of_others_are_left_alone() -> None:
    """They are filtered out here, and not by the switch of the whole process."""
    from prometheus_client import CollectorRegistry, Counter, generate_latest

    metrics = Metrics()
    Exposition(metrics).render("")
    registry = CollectorRegistry()
    Counter("mine", "Of the application.", registry=registry)
    assert b"mine_created" in generate_latest(registry)


def test_two_expositions_of_the_same_metrics() -> None:
    """The series of the process are there once."""
    metrics = Metrics()
    Exposition(metrics)
    body, _ = Exposition(metrics).render("")
    assert body.count(b"\nprocess_open_fds ") == 1
