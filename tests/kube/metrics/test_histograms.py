from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.exposition import generate_latest

from trainer.kube.metrics.histograms import QuickHistogram

_BUCKETS = (1e-05, 0.001, 0.5, 1, 30)


def test_exposes_what_a_usual_histogram_exposes() -> None:
    """Scrapes cannot tell it from a histogram of prometheus_client that has seen the same values."""
    quick, usual = CollectorRegistry(), CollectorRegistry()
    ours = QuickHistogram("a_seconds", "Time.", ["plugin"], buckets=_BUCKETS, registry=quick)
    theirs = Histogram("a_seconds", "Time.", ["plugin"], buckets=_BUCKETS, registry=usual)
    for value in (0, 1e-05, 0.25, 0.5, 0.75, 30, 31, 1000):
        ours.labels("torch").observe(value)
        theirs.labels("torch").observe(value)
    ours.labels("mpi")
    theirs.labels("mpi")
    lines = generate_latest(usual).decode().splitlines()
    assert generate_latest(quick).decode().splitlines() == [line for line in lines if "_created" not in line]


def test_the_name_of_a_registered_histogram_is_taken() -> None:
    """A second metric of the same name is refused, as for all others."""
    registry = CollectorRegistry()
    QuickHistogram("a_seconds", "Time.", [], buckets=_BUCKETS, registry=registry)
    with pytest.raises(ValueError, match="Duplicated"):
        Histogram("a_seconds", "Time.", registry=registry)
