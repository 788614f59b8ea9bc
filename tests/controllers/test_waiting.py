"""TrainJobs that wait for what only events tell, or for nobody."""

from __future__ import annotations

import pytest

from tests.controllers.conftest import Cluster
from tests.framework.samples import train_job_object
from tests.plugins.test_jobset_events import event, job
from tests.plugins.test_jobset_pod_problems import pod, unseen
from trainer.framework.deploying.transforms import EVENTS_LIMIT
from trainer.kube.events.compact import MESSAGE_LIMIT
from trainer.kube.objects import Object, uid_of

REFUSED = 'Error creating: pods "demo-node-0-0-" is forbidden: exceeded quota: team'


def job_of(cluster: Cluster) -> Object:
    """The Job that JobSet has made, without pods."""
    obj = job()
    obj["metadata"]["ownerReferences"][0]["uid"] = uid_of(cluster.jobset)
    return obj


def pod_of_jobset(cluster: Cluster, obj: Object) -> Object:
    """A pod with the uid of the JobSet."""
    obj["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-uid"] = uid_of(cluster.jobset)
    return obj


@pytest.mark.parametrize("is_job_first", [True, False])
async def test_refused_pods(cluster: Cluster, *, is_job_first: bool) -> None:
    """Pending with the words of the Job, whichever watch is faster, until the pods are there."""
    async with cluster.managed():
        await cluster.put(train_job_object())
        complaint = event("Job", "demo-node-0", "FailedCreate", REFUSED, uid="uid-of-node")
        for obj in (job_of(cluster), complaint) if is_job_first else (complaint, job_of(cluster)):
            await cluster.put(obj)
        await cluster.clock.advance(3)
        assert cluster.train_job["status"]["state"] == "Pending"
        said = f"1 pod cannot be created: Job demo-node-0: {REFUSED}"
        assert cluster.condition("Pending") == ("True", "FailedCreate", said)
        assert ("Warning", "FailedCreate", said) in cluster.events

        cluster.forget_requests()
        await cluster.put(complaint | {"lastTimestamp": "2026-01-01T00:09:10Z"})
        await cluster.clock.advance(3)
        assert cluster.writes == [], "a repeat is no news"

        await cluster.put(pod_of_jobset(cluster, pod()))
        await cluster.clock.advance(3)
        assert cluster.train_job["status"]["state"] == "Created"
        assert cluster.condition("Pending") == ("False", "NoPodWaits", f"FailedCreate: {said}")


async def test_a_scheduler_that_does_not_run(cluster: Cluster) -> None:
    """Nobody says anything about the pods, so the manager does after half a minute, and takes it back."""
    async with cluster.managed():
        await cluster.put(train_job_object())
        await cluster.put(pod_of_jobset(cluster, unseen()))
        await cluster.run_jobset(active=1)
        await cluster.clock.advance(29)
        assert cluster.train_job["status"]["state"] == "Created"
        await cluster.clock.advance(2)
        assert cluster.train_job["status"]["state"] == "Pending"
        pending = cluster.condition("Pending")
        assert pending is not None
        assert pending[:2] == ("True", "NoScheduler")
        assert "no scheduler called coscheduling has looked at it" in pending[2]

        await cluster.put(pod_of_jobset(cluster, pod()))
        await cluster.clock.advance(1)
        assert cluster.train_job["status"]["state"] == "Created"


async def test_pods_that_come_after_their_jobset_tells_of_them(cluster: Cluster) -> None:
    """Their watch may be slower than that of the JobSet."""
    async with cluster.managed():
        await cluster.put(train_job_object())
        await cluster.run_jobset(active=1)
        await cluster.put(pod_of_jobset(cluster, unseen()))
        await cluster.clock.advance(31)
        assert cluster.train_job["status"]["state"] == "Pending"


@pytest.mark.parametrize("number", [10, 2000])
async def test_events_of_a_tenant_take_a_bounded_room(cluster: Cluster, number: int) -> None:
    """However many events somebody writes, and however large, and their own TrainJob is looked at a few times."""
    async with cluster.managed():
        await cluster.put(train_job_object())
        await cluster.put(job_of(cluster))
        cluster.forget_requests()
        for index in range(number):
            forged = event("Job", "demo-node-0", "FailedCreate", "x" * 5000, uid="uid-of-node")
            forged["metadata"] |= {"name": f"forged.{index}", "annotations": {"a": "y" * 5000}}
            cluster.client.add(forged)
        await cluster.clock.advance(5)
        assert len(cluster.writes) <= 2
        labels = {"resource": "events", "selection": "fields=involvedObject.kind=Job,reason=FailedCreate"}
        get = cluster.metrics.registry.get_sample_value
        assert get("trainer_kube_cache_objects", labels) == min(number, EVENTS_LIMIT)
        assert (get("trainer_kube_cache_bytes", labels) or 0) < 2 * MESSAGE_LIMIT * min(number, EVENTS_LIMIT)
