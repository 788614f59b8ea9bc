"""TrainJobs that have not started get another number of nodes: their JobSet is deleted and created again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.controllers.conftest import Cluster
from tests.framework.samples import replicated_job, runtime_object, train_job_object
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.kube.client import ObjectRequest, Verb
from trainer.kube.objects import Object
from trainer.kube.resource import CONFIG_MAPS, SECRETS
from trainer.webhooks.mutability import forbidden_changes
from trainer.workloads import JOBSETS
from trainer_kube_testing import settle


def size(jobset: Object) -> int:
    """Number of nodes of a JobSet."""
    found: int = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["parallelism"]
    return found


async def resize(cluster: Cluster, nodes: int, **spec: Any) -> None:
    """The user changes the number of nodes, which admission lets through."""
    before = cluster.train_job
    changes = {"trainer": {"numNodes": nodes}} | spec
    assert list(forbidden_changes(before, before | {"spec": before["spec"] | changes})) == []
    await cluster.change(before, **changes)


def deletions(cluster: Cluster) -> int:
    """How often a JobSet was deleted by the manager."""
    return len([each for each in cluster.client.requests_of("delete") if each.resource == JOBSETS])


@pytest.mark.parametrize("suspend", [True, False])
async def test_the_jobset_is_created_again(cluster: Cluster, suspend: bool) -> None:
    """It waits for what the old one owned to go, and is resumed by the same update or a later one."""
    async with cluster.managed():
        await cluster.put(train_job_object(suspend=True, trainer={"numNodes": 2}))
        await cluster.run_jobset(suspended=1)
        former = cluster.jobset
        digest = cluster.train_job["status"]["runtimeDigest"]
        await resize(cluster, 3, suspend=suspend)
        assert size(cluster.jobset) == 2
        await cluster.resync()
        assert deletions(cluster) == 1
        await cluster.collect()
        assert size(cluster.jobset) == 3
        assert cluster.jobset["metadata"]["uid"] != former["metadata"]["uid"]
        assert bool(cluster.jobset["spec"].get("suspend")) is suspend
        assert cluster.condition("Created") == ("True", "JobsCreationSucceeded", "Succeeded to create Jobs")
        assert cluster.train_job["status"]["runtimeDigest"] == digest
        cluster.forget_requests()
        await cluster.resync()
        assert cluster.writes == []


async def test_a_manager_that_dies_between(cluster: Cluster) -> None:
    """The next one goes on, whether the JobSet is gone by then or not."""
    async with cluster.managed():
        await cluster.put(train_job_object(suspend=True))
        await resize(cluster, 3)
    async with cluster.managed():
        assert deletions(cluster) == 1
    await cluster.collect()
    async with cluster.managed():
        assert size(cluster.jobset) == 3


async def test_a_jobset_that_somebody_resumes_meanwhile(cluster: Cluster) -> None:
    """The resource version of the one that was seen is a precondition: nothing that runs is deleted."""
    async with cluster.managed():
        await cluster.put(train_job_object(suspend=True, trainer={"numNodes": 2}))
        cluster.client.faults.hold_watches(JOBSETS)
        peer, spec = cluster.client.peer(), cluster.jobset["spec"]
        await peer.patch(JOBSETS, "demo", {"spec": spec | {"suspend": False}}, "default", field_manager="kueue")
        await resize(cluster, 3)
        assert deletions(cluster) >= 1
        assert "deletionTimestamp" not in cluster.jobset["metadata"]
        cluster.client.faults.release()
        await cluster.clock.advance(5)
        await cluster.collect()
        assert (size(cluster.jobset), cluster.jobset["spec"]["suspend"]) == (2, False)
        await peer.patch(JOBSETS, "demo", {"spec": spec | {"suspend": True}}, "default", field_manager="kueue")
        await settle()
        await cluster.collect()
        assert size(cluster.jobset) == 2, "it has run"


async def test_what_a_webhook_changes_is_no_reason(cluster: Cluster) -> None:
    """Only what the TrainJob has changed is: others would change the new JobSet as well."""
    send = cluster.client.send

    async def mirrored(request: ObjectRequest) -> Object | None:
        if request.verb is Verb.APPLY and request.resource == JOBSETS:
            jobset: Any = request.body
            (job,) = jobset["spec"]["replicatedJobs"]
            job["template"]["spec"]["template"]["spec"]["containers"][0]["image"] = "mirror/image"
        return await send(request)

    cluster.client.send = mirrored  # type: ignore[method-assign]
    async with cluster.managed():
        await cluster.put(train_job_object(suspend=True))
        await cluster.resync()
        assert deletions(cluster) == 0
        await resize(cluster, 3)
        for _ in range(3):
            await cluster.collect()
            await cluster.resync()
        assert size(cluster.jobset) == 3
        assert deletions(cluster) == 1


async def test_hosts_and_keys_of_mpi(cluster: Cluster) -> None:
    """The list of hosts has the new nodes before they run, and the keys stay."""
    jobs = replicated_job("node"), replicated_job("launcher")
    runtime = runtime_object(*jobs, policy={"numNodes": 2, "mpi": {"numProcPerNode": 1}})
    await cluster.client.delete(CLUSTER_TRAINING_RUNTIMES, "blueprint")
    cluster.client.add(runtime)
    async with cluster.managed():
        await cluster.put(train_job_object(suspend=True))
        (keys,) = cluster.client.objects(SECRETS)
        await resize(cluster, 3)
        await cluster.collect()
        await cluster.change(cluster.train_job, suspend=False)
        assert size(cluster.jobset) == 3
        assert cluster.client.objects(SECRETS) == [keys]
        hosts = [
            line
            for each in cluster.client.objects(CONFIG_MAPS)
            for line in (each["data"].get("hostfile") or "").splitlines()
        ]
        assert len(hosts) == 3
