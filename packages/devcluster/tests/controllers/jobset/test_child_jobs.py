from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from packages.devcluster.tests.controllers.jobset.samples import (
    RUNNING,
    complete,
    failed,
    make_job,
    make_jobset,
    make_replicated_job,
)
from trainer.kube.objects import name_of
from trainer_devcluster.controllers.jobset.child_jobs import ChildJobs, ReplicatedJobCount

if TYPE_CHECKING:
    from trainer.kube.objects import Object


def test_jobs_are_sorted_by_how_they_fare() -> None:
    """Jobs of an earlier restart do not count, whatever their state."""
    before = make_jobset(make_replicated_job(replicas=4))
    after = make_jobset(make_replicated_job(replicas=4), status={"restarts": 1})
    old = make_job(before, index=0, status=failed())
    jobs = [old, *(make_job(after, index=i, status=s) for i, s in ((1, RUNNING), (2, complete()), (3, failed())))]

    children = ChildJobs.of(after, jobs)

    assert [name_of(job) for job in children.previous] == ["js-node-0"]
    assert [name_of(job) for job in children.active] == ["js-node-1"]
    assert [name_of(job) for job in children.successful] == ["js-node-2"]
    assert [name_of(job) for job in children.failed] == ["js-node-3"]
    assert len(children.names) == 4


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({}, (0, 0, 0, 0), id="just made"),
        pytest.param({"active": 2, "ready": 1}, (0, 0, 0, 1), id="not all pods ready"),
        pytest.param({"active": 2, "ready": 2}, (1, 0, 0, 1), id="ready"),
        pytest.param({"active": 1, "ready": 1, "succeeded": 1}, (1, 0, 0, 1), id="a finished pod counts as ready"),
        pytest.param(complete(), (0, 1, 0, 0), id="complete"),
        pytest.param(failed(), (0, 0, 1, 0), id="failed"),
        pytest.param(
            {"active": 2, "conditions": [{"type": "FailureTarget", "status": "True"}]},
            (0, 0, 0, 1),
            id="failing is not failed",
        ),
    ],
)
def test_counts_of_a_replicated_job(status: Object, expected: tuple[int, int, int, int]) -> None:
    """Ready, succeeded, failed and active follow from the status of the Job."""
    jobset = make_jobset()
    count = ChildJobs.of(jobset, [make_job(jobset, status=status)]).count("node")
    assert (count.ready, count.succeeded, count.failed, count.active) == expected


def test_suspended_jobs_are_counted() -> None:
    """A suspended Job is neither ready nor active."""
    jobset = make_jobset(suspend=True)
    count = ChildJobs.of(jobset, [make_job(jobset)]).count("node")
    assert count == ReplicatedJobCount("node", ready=0, succeeded=0, failed=0, active=0, suspended=1)
