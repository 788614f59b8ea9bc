"""Many TrainJobs at once."""

from __future__ import annotations

import re

import pytest

from e2e.leftovers import identities, repeated_events
from e2e.replicas import BRIEF, Replicas, fake_job
from e2e.submission import submit

pytestmark = pytest.mark.timeout(600)
JOBS = 500
TIMEOUT = 300.0
"""Seconds, mostly of computing: a minute on two idle cores, several when others compute as well."""


def test_many_at_once(replicas: Replicas) -> None:
    """Each of 500 TrainJobs gets its JobSet once and is Complete in the end, and no reconcile fails."""
    before = failed_reconciles(replicas)
    submitted = submit(replicas.cluster, [fake_job(f"job-{number}", BRIEF) for number in range(JOBS)], at_once=32)
    assert not submitted.refused
    assert len(submitted.accepted) == JOBS
    replicas.wait_for_state("Complete", submitted.accepted, timeout=TIMEOUT)
    assert replicas.creations() == dict.fromkeys(submitted.accepted, 1)
    assert len(identities(replicas.cluster, "jobsets")) == JOBS
    assert failed_reconciles(replicas) == before
    assert not repeated_events(replicas.cluster)


def failed_reconciles(replicas: Replicas) -> float:
    """Of both, since their processes have started."""
    texts = [each.process.metrics(replicas.cluster) for each in replicas.both]
    values = re.findall(r"^controller_runtime_reconcile_errors_total\{.*\} (\S+)$", "".join(texts), re.MULTILINE)
    assert values
    return sum(map(float, values))
