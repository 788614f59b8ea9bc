"""Roles of pods, and their counts."""

from __future__ import annotations

import pytest

from trainer.api.jobset_pods import Place
from trainer.kube.objects import Object
from trainer_v1_jobs.controllers.roles import Counts, ReplicaIndex, ReplicaLayout

TOGETHER = ReplicaLayout({"node": (("Master", 1), ("Worker", 2))})
PARTED = ReplicaLayout({"master": (("Master", 1),), "worker": (("Worker", 2),)})


@pytest.mark.parametrize(
    ("layout", "place", "expected"),
    [
        pytest.param(TOGETHER, Place("node", 0, 0), ReplicaIndex("Master", 0), id="the-first-node-is-the-master"),
        pytest.param(TOGETHER, Place("node", 0, 2), ReplicaIndex("Worker", 1), id="workers-follow-it"),
        pytest.param(TOGETHER, Place("node", 0, 7), ReplicaIndex("Worker", 6), id="further-workers-of-an-elastic-job"),
        pytest.param(PARTED, Place("worker", 1, 0), ReplicaIndex("Worker", 1), id="a-job-for-each-worker"),
        pytest.param(PARTED, Place("initializer", 0, 0), None, id="no-role"),
    ],
)
def test_seats(layout: ReplicaLayout, place: Place, expected: ReplicaIndex | None) -> None:
    """A pod has a role and an index in it, by its place in the JobSet."""
    assert layout.index_of(place) == expected


def pod(index: int, phase: str, *, made: str = "2026-01-01T00:00:00Z", deleted: bool = False) -> Object:
    """A pod of the replicated Job node."""
    return {
        "metadata": {
            "name": f"p-{index}-{made}",
            "labels": {
                "jobset.sigs.k8s.io/replicatedjob-name": "node",
                "batch.kubernetes.io/job-completion-index": str(index),
            },
            "creationTimestamp": made,
        }
        | ({"deletionTimestamp": made} if deleted else {}),
        "status": {"phase": phase},
    }


LATER = "2026-01-01T00:05:00Z"


@pytest.mark.parametrize(
    ("pods", "master", "worker"),
    [
        pytest.param([], Counts(), Counts(), id="none"),
        pytest.param([pod(0, "Pending")], Counts(), Counts(), id="waits"),
        pytest.param([pod(0, "Running"), pod(1, "Running")], Counts(1), Counts(1), id="runs"),
        pytest.param([pod(1, "Succeeded"), pod(2, "Failed")], Counts(), Counts(0, 1, 1), id="ended"),
        pytest.param([pod(0, "Running", deleted=True)], Counts(failed=1), Counts(), id="runs-and-is-being-deleted"),
        pytest.param([pod(1, "Failed"), pod(1, "Running", made=LATER)], Counts(), Counts(1), id="made-again"),
    ],
)
def test_counts(pods: list[Object], master: Counts, worker: Counts) -> None:
    """Each replica counts once, by its newest pod."""
    assert TOGETHER.counts(pods) == {"Master": master, "Worker": worker}
