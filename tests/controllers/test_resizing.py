"""Suspended TrainJobs ask for other pods: their JobSet is deleted and created again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.controllers.conftest import Cluster
from tests.framework.samples import replicated_job, runtime_object, train_job_object
from trainer.api.jobset_labels import JOB_INDEX, JOBSET_NAME, JOBSET_UID, REPLICATED_JOB
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.kube.client import ObjectRequest, Verb
from trainer.kube.objects import Object, uid_of
from trainer.kube.resource import CONFIG_MAPS, PODS, SECRETS
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


def template_of(jobset: Object) -> Object:
    """The pods of a JobSet."""
    found: Object = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    return found


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
        created = "Succeeded to create Jobs; JobSet is made anew once it is suspended"
        assert cluster.condition("Created") == ("True", "JobsCreationSucceeded", created)
        await peer.patch(JOBSETS, "demo", {"spec": spec | {"suspend": True}}, "default", field_manager="kueue")
        await settle()
        await cluster.collect()
        assert size(cluster.jobset) == 3, "nothing of it runs"


def pod_of(jobset: Object) -> Object:
    """A pod of a JobSet."""
    labels = {JOBSET_NAME: "demo", JOBSET_UID: uid_of(jobset), REPLICATED_JOB: "node", JOB_INDEX: "0"}
    job = {"apiVersion": "batch/v1", "kind": "Job", "name": "demo-node-0", "uid": "j", "controller": True}
    metadata = {"name": "demo-node-0-0-x", "namespace": "default", "labels": labels, "ownerReferences": [job]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {"phase": "Running"}}


async def test_a_training_that_has_run(cluster: Cluster) -> None:
    """It is resumed with fewer nodes and back, each time once its pods have ended, and on the runtime as it was."""
    async with cluster.managed():
        await cluster.put(train_job_object(trainer={"numNodes": 2}))
        await cluster.put(pod_of(cluster.jobset))
        await cluster.run_jobset(active=1, ready=1)
        former = cluster.train_job["status"]
        await cluster.put(runtime_object(replicated_job("node", {"name": "trainer", "image": "newer"})))
        for nodes in (1, 2):
            await cluster.change(cluster.train_job, suspend=True)
            await cluster.run_jobset(suspended=1)
            await resize(cluster, nodes)
            created = "Succeeded to create Jobs; JobSet is made anew once pod demo-node-0-0-x has ended"
            assert cluster.condition("Created") == ("True", "JobsCreationSucceeded", created)
            assert cluster.events[-1] == ("Normal", "JobsCreationSucceeded", created)
            cluster.forget_requests()
            await cluster.resync()
            assert cluster.writes == []
            await cluster.change(cluster.train_job, suspend=False)
            assert cluster.jobset["spec"]["suspend"], "its pod still runs"
            assert deletions(cluster) == 0
            cluster.client.remove(PODS, "demo-node-0-0-x", "default")
            await cluster.clock.advance(1)
            assert deletions(cluster) == 1
            await cluster.collect()
            assert (size(cluster.jobset), bool(cluster.jobset["spec"].get("suspend"))) == (nodes, False)
            assert cluster.condition("Created") == ("True", "JobsCreationSucceeded", "Succeeded to create Jobs")
            await cluster.put(pod_of(cluster.jobset))
            await cluster.run_jobset(active=1, ready=1)
            assert cluster.train_job["status"]["state"] == "Running"
        (container,) = template_of(cluster.jobset)["containers"]
        assert container["image"] == "runtime-image"
        for name in ("startTime", "runtimeDigest"):
            assert cluster.train_job["status"][name] == former[name]


async def test_restarts_of_another_jobset(cluster: Cluster) -> None:
    """It has the limit that the TrainJob states by then, and counts from nothing; so does the status."""
    async with cluster.managed():
        await cluster.put(train_job_object(maxRestarts=1))
        jobset = cluster.jobset
        await cluster.put(jobset | {"status": {"restarts": 3, "restartsCountTowardsMax": 1}})
        counted = {"disruptions": 2, "failures": 1, "maxRestarts": 1}
        assert cluster.train_job["status"]["restarts"] == counted
        await cluster.change(cluster.train_job, suspend=True)
        await cluster.run_jobset(suspended=1)
        await cluster.put(cluster.jobset | {"status": {"restarts": 3, "restartsCountTowardsMax": 1}})
        await cluster.change(cluster.train_job, maxRestarts=4)
        assert deletions(cluster) == 1
        assert cluster.train_job["status"]["restarts"] == counted
        await cluster.collect()
        await cluster.run_jobset(suspended=1)
        assert cluster.jobset["spec"]["failurePolicy"]["maxRestarts"] == 4
        assert "restarts" not in cluster.train_job["status"]


async def test_a_second_admission(cluster: Cluster) -> None:
    """The pods have the node selectors, tolerations and resources of the second alone."""

    def placed(pool: str) -> Object:
        return {"targetJobs": [{"name": "node"}], "nodeSelector": {pool: "1"}, "tolerations": [{"key": pool}]}

    small, large = ({"limits": {"cpu": cpu}} for cpu in ("1", "2"))
    async with cluster.managed():
        await cluster.put(train_job_object(suspend=True, trainer={"resourcesPerNode": small}))
        await cluster.change(cluster.train_job, podSpecOverrides=[placed("a")])
        await cluster.change(cluster.train_job, suspend=False)
        assert deletions(cluster) == 0, "JobSet adds what is new"
        await cluster.run_jobset(active=1, ready=1)
        await cluster.change(cluster.train_job, suspend=True)
        await cluster.run_jobset(suspended=1)
        changes = {"podSpecOverrides": [placed("b")], "trainer": {"resourcesPerNode": large}}
        before = cluster.train_job
        assert list(forbidden_changes(before, before | {"spec": before["spec"] | changes})) == []
        await cluster.change(before, **changes)
        assert deletions(cluster) == 1
        await cluster.change(cluster.train_job, suspend=False)
        await cluster.collect()
        pods = template_of(cluster.jobset)
        assert (pods["nodeSelector"], pods["tolerations"]) == ({"b": "1"}, [{"key": "b"}])
        assert pods["containers"][0]["resources"] == large
        assert deletions(cluster) == 1


async def test_what_a_webhook_changes_is_no_reason(cluster: Cluster) -> None:
    """Only what the TrainJob has changed is: others would change the new JobSet as well."""
    send = cluster.client.send

    async def mirrored(request: ObjectRequest) -> Object | None:
        if request.verb is Verb.APPLY and request.resource == JOBSETS:
            jobset: Any = request.body
            (job,) = jobset["spec"]["replicatedJobs"]
            pods = job["template"]["spec"]["template"]["spec"]
            pods["containers"][0]["image"] = "mirror/image"
            pods["tolerations"] = [{"key": "mirrored"}]
        return await send(request)

    cluster.client.send = mirrored  # type: ignore[method-assign]
    async with cluster.managed():
        await cluster.put(train_job_object(suspend=True))
        await cluster.resync()
        await cluster.change(cluster.train_job, suspend=False)
        await cluster.change(cluster.train_job, suspend=True)
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
