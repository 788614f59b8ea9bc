"""Deadline and time to live of a TrainJob."""

from __future__ import annotations

from typing import Any

import pytest

from tests.controllers.conftest import Cluster
from tests.framework.samples import train_job, train_job_object
from trainer.api.trainjob import TRAIN_JOBS
from trainer.controllers.job import Job, deadline_of, expiry_of
from trainer.kube.clock import parse_timestamp, timestamp
from trainer.kube.errors import ForbiddenError
from trainer.kube.objects import Object
from trainer.workloads import JOBSETS
from trainer_kube_testing import settle

NOW = "2026-01-01T12:00:00Z"
CREATED_AT = "2026-01-01T11:00:00Z"
RESUMED_AT = "2026-01-01T11:30:00Z"
OTHERS = {"name": "demo", "namespace": "default"}
COMPLETED = {"type": "Completed", "status": "True", "reason": "AllJobsCompleted", "message": "jobset completed"}


def condition(condition_type: str, status: str, since: str, reason: str = "R") -> Object:
    """A condition."""
    return {"type": condition_type, "status": status, "reason": reason, "message": "", "lastTransitionTime": since}


@pytest.mark.parametrize(
    ("spec", "conditions", "deadline"),
    [
        pytest.param({}, [], None, id="no-limit"),
        pytest.param({"activeDeadlineSeconds": 60}, [], "2026-01-01T11:01:00Z", id="from-creation"),
        pytest.param({"activeDeadlineSeconds": 60, "suspend": True}, [], None, id="suspended"),
        pytest.param(
            {"activeDeadlineSeconds": 60},
            [condition("Suspended", "False", RESUMED_AT)],
            "2026-01-01T11:31:00Z",
            id="from-the-last-resumption",
        ),
        pytest.param(
            {"activeDeadlineSeconds": 60},
            [condition("Suspended", "True", RESUMED_AT)],
            "2026-01-01T12:01:00Z",
            id="being-resumed-right-now",
        ),
        pytest.param(
            {"activeDeadlineSeconds": 60},
            [condition("Created", "True", RESUMED_AT)],
            "2026-01-01T11:01:00Z",
            id="other-conditions-do-not-count",
        ),
        pytest.param({"activeDeadlineSeconds": 10**12}, [], None, id="beyond-the-calendar"),
        pytest.param({"activeDeadlineSeconds": 2**63 - 1}, [], None, id="longest"),
    ],
)
def test_deadline(spec: Any, conditions: list[Object], deadline: str | None) -> None:
    """Seconds since the creation or the last resumption; none pass while suspended."""
    job = train_job(status={"conditions": conditions}, **spec)
    job.metadata.creation_timestamp = CREATED_AT
    found = deadline_of(job, parse_timestamp(NOW))
    assert (found and timestamp(found)) == deadline


@pytest.mark.parametrize(
    ("spec", "conditions", "expiry"),
    [
        pytest.param({}, [condition("Complete", "True", NOW)], None, id="stays"),
        pytest.param({"ttlSecondsAfterFinished": 60}, [condition("Complete", "False", NOW)], None, id="not-true"),
        pytest.param({"ttlSecondsAfterFinished": 0}, [condition("Failed", "True", NOW)], NOW, id="failed-at-once"),
    ],
)
def test_expiry(spec: Any, conditions: list[Object], expiry: str | None) -> None:
    """Seconds since the TrainJob finished."""
    found = expiry_of(train_job(status={"conditions": conditions}, **spec))
    assert (found and timestamp(found)) == expiry


def test_only_its_own_deadline_counts() -> None:
    """A JobSet that failed by itself is not deleted."""
    failed = condition("Failed", "True", NOW, reason="FailedJobs")
    assert not Job.of(train_job_object() | {"status": {"conditions": [failed]}}).ended_at_deadline
    failed["reason"] = "DeadlineExceeded"
    assert Job.of(train_job_object() | {"status": {"conditions": [failed]}}).ended_at_deadline


def limited(cluster: Cluster, **spec: Any) -> Object:
    """A TrainJob that is created now."""
    obj = train_job_object(**spec)
    obj["metadata"]["creationTimestamp"] = timestamp(cluster.clock.now())
    return obj


async def test_a_deadline_passes(cluster: Cluster) -> None:
    """The TrainJob fails with DeadlineExceeded, its JobSet is deleted, and neither comes back."""
    async with cluster.managed():
        await cluster.put(limited(cluster, activeDeadlineSeconds=60))
        await cluster.run_jobset(active=1, ready=1)
        await cluster.clock.advance(59)
        assert cluster.train_job["status"]["state"] == "Running"
        await cluster.clock.advance(2)
        assert cluster.condition("Failed") == (
            "True",
            "DeadlineExceeded",
            "TrainJob was active for longer than spec.activeDeadlineSeconds (60 s)",
        )
        assert cluster.train_job["status"]["state"] == "Failed"
        assert cluster.jobsets == []
        (counts,) = cluster.train_job["status"]["jobsStatus"]
        assert (counts["active"], counts["ready"]) == (0, 0)
        await cluster.resync()
        assert cluster.jobsets == []


async def test_an_end_before_the_deadline(cluster: Cluster) -> None:
    """A training that ended while no manager ran is complete, though its deadline has passed since."""
    async with cluster.managed():
        await cluster.put(limited(cluster, activeDeadlineSeconds=60))
    done = {"type": "Completed", "status": "True", "reason": "AllJobsCompleted", "message": "done"}
    await cluster.run_jobset("Completed", done, succeeded=1)
    await cluster.clock.advance(61)
    async with cluster.managed():
        assert cluster.train_job["status"]["state"] == "Complete"
        assert cluster.condition("Failed") is None


async def test_a_manager_that_comes_too_late(cluster: Cluster) -> None:
    """What has missed its deadline already is not started any more."""
    cluster.client.add(limited(cluster, activeDeadlineSeconds=60))
    await cluster.clock.advance(61)
    async with cluster.managed():
        assert cluster.train_job["status"]["state"] == "Failed"
        assert cluster.condition("Created") is None
        assert [request.resource for request in cluster.writes if request.verb == "apply"] == [TRAIN_JOBS]


async def test_a_deletion_that_fails_is_tried_again(cluster: Cluster) -> None:
    """The Failed condition is stored by then, and still the JobSet goes."""
    async with cluster.managed():
        await cluster.put(limited(cluster, activeDeadlineSeconds=60))
        cluster.client.faults.fail(ForbiddenError(403, "not now"), verb="delete", resource=JOBSETS)
        await cluster.clock.advance(61)
        assert cluster.condition("Failed") is not None
        await cluster.clock.advance(1)
        assert cluster.jobsets == []


async def test_the_deadline_of_a_train_job_that_cannot_start(cluster: Cluster) -> None:
    """It passes in time, though the attempts to start it have become rare."""
    cluster.client.add({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": OTHERS, "spec": {}})
    async with cluster.managed():
        await cluster.put(limited(cluster, activeDeadlineSeconds=60))
        for _ in range(59):
            await cluster.clock.advance(1)
        assert cluster.train_job["status"]["state"] == "Blocked"
        await cluster.clock.advance(1)
        assert cluster.train_job["status"]["state"] == "Failed"
        assert len(cluster.jobsets) == 1


async def test_a_jobset_that_completes_in_time(cluster: Cluster) -> None:
    """What has completed stays complete, whenever the deadline passes."""
    async with cluster.managed():
        await cluster.put(limited(cluster, activeDeadlineSeconds=60))
        await cluster.run_jobset("Completed", COMPLETED, succeeded=1)
        await cluster.clock.advance(120)
        assert cluster.condition("Failed") is None
        assert len(cluster.jobsets) == 1


async def test_time_stands_still_while_suspended(cluster: Cluster) -> None:
    """A resumed TrainJob has all its time again."""
    async with cluster.managed():
        await cluster.put(limited(cluster, activeDeadlineSeconds=60, suspend=True))
        await cluster.clock.advance(600)
        assert cluster.condition("Failed") is None
        await cluster.change(cluster.train_job, suspend=False)
        await cluster.clock.advance(59)
        assert cluster.condition("Failed") is None
        await cluster.clock.advance(2)
        assert cluster.condition("Failed") is not None


async def test_a_restarted_manager_keeps_the_deadline(cluster: Cluster) -> None:
    """It passed while no manager ran: the next one sees that at once."""
    async with cluster.managed():
        await cluster.put(limited(cluster, activeDeadlineSeconds=60))
    await cluster.clock.advance(61)
    async with cluster.managed():
        assert cluster.condition("Failed") is not None
        assert cluster.jobsets == []


async def test_a_finished_train_job_is_deleted_after_its_time(cluster: Cluster) -> None:
    """Its children follow by their owner references; until then it can still be given more time."""
    async with cluster.managed():
        await cluster.put(limited(cluster, ttlSecondsAfterFinished=60))
        await cluster.run_jobset("Completed", COMPLETED, succeeded=1)
        await cluster.clock.advance(59)
        await cluster.change(cluster.train_job, ttlSecondsAfterFinished=120)
        await cluster.clock.advance(2)
        assert cluster.train_job["status"]["state"] == "Complete"
        await cluster.clock.advance(60)
        assert cluster.client.objects(TRAIN_JOBS) == []


async def test_a_stale_cache_deletes_nothing(cluster: Cluster) -> None:
    """More time that the cache does not show yet counts."""
    async with cluster.managed():
        await cluster.put(limited(cluster, ttlSecondsAfterFinished=60))
        await cluster.run_jobset("Completed", COMPLETED, succeeded=1)
        await cluster.clock.advance(1)
        cluster.client.faults.hold_watches()
        await cluster.change(cluster.train_job, ttlSecondsAfterFinished=3600)
        await cluster.clock.advance(60)
        assert len(cluster.client.objects(TRAIN_JOBS)) == 1
        cluster.client.faults.release_watches()
        await settle()
        await cluster.clock.advance(3600)
        assert cluster.client.objects(TRAIN_JOBS) == []


async def test_a_successor_of_the_name_stays(cluster: Cluster) -> None:
    """A TrainJob that takes the name just before the deletion arrives is not deleted."""
    async with cluster.managed():
        await cluster.put(limited(cluster, ttlSecondsAfterFinished=60))
        await cluster.run_jobset("Completed", COMPLETED, succeeded=1)
        hold = cluster.client.faults.hold(verb="delete", resource=TRAIN_JOBS)
        await cluster.clock.advance(60)
        assert hold.waiting == 1
        cluster.client.remove(TRAIN_JOBS, "demo", "default")
        cluster.client.remove(JOBSETS, "demo", "default")
        successor = limited(cluster)
        successor["metadata"]["uid"] = "another"
        cluster.client.add(successor)
        hold.release()
        await settle()
        assert cluster.train_job["metadata"]["uid"] == "another"


async def test_who_learns_late_that_a_train_job_has_ended_deletes_it_in_time(cluster: Cluster) -> None:
    """Its end was written by the leader before, and the cache shows it only after its objects are gone."""
    async with cluster.managed():
        await cluster.put(train_job_object(ttlSecondsAfterFinished=30))
        now, others = timestamp(cluster.clock.now()), cluster.client.peer()
        cluster.client.faults.hold_watches(TRAIN_JOBS)
        status = cluster.train_job["status"]
        ended = [*status["conditions"], condition("Complete", "True", now)]
        others.add(cluster.train_job | {"status": status | {"conditions": ended, "state": "Complete"}})
        others.remove(JOBSETS, "demo", "default")
        await settle()
        cluster.client.faults.release_watches()
        await cluster.clock.advance(31)
        assert cluster.jobsets == []
        assert cluster.client.objects(TRAIN_JOBS) == []
