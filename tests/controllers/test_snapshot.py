"""Snapshots of runtimes in the life of a TrainJob."""

from __future__ import annotations

import json

import pytest

from tests.controllers.conftest import Cluster
from tests.framework.samples import replicated_job, runtime_object, train_job_object
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.framework.runtimes.runtimes import make_snapshot
from trainer.kube.errors import InvalidError
from trainer.kube.objects import Object
from trainer.kube.resource import CONFIG_MAPS
from trainer.workloads import JOBSETS
from trainer_kube_testing import settle

NAME = "demo-runtime-snapshot"


def image(cluster: Cluster) -> str:
    """Image of the training container."""
    job = cluster.jobset["spec"]["replicatedJobs"][0]
    found: str = job["template"]["spec"]["template"]["spec"]["containers"][0]["image"]
    return found


async def test_no_snapshot_of_a_runtime_that_does_not_fit(cluster: Cluster) -> None:
    """A build that fails keeps nothing, so that a better runtime of the same name heals it."""
    cluster.client.add(runtime_object(policy={"mpi": {}}))
    async with cluster.managed():
        await cluster.put(train_job_object())
        assert cluster.client.objects(CONFIG_MAPS) == []
        await cluster.put(runtime_object())
        assert image(cluster) == "runtime-image"
        (snapshot,) = cluster.client.objects(CONFIG_MAPS)
        assert "mlPolicy" not in json.loads(snapshot["data"]["runtime"])["spec"]


async def test_a_deleted_snapshot_is_taken_again(cluster: Cluster) -> None:
    """Of the runtime of that moment; what runs is left alone all the same."""
    async with cluster.managed():
        await cluster.put(train_job_object())
        cluster.client.add(runtime_object(replicated_job("node", {"name": "trainer", "image": "newer"})))
        await cluster.client.delete(CONFIG_MAPS, NAME, "default")
        await settle()
        (snapshot,) = cluster.client.objects(CONFIG_MAPS)
        assert "newer" in snapshot["data"]["runtime"]
        assert image(cluster) == "runtime-image"


async def test_a_config_map_of_somebody_else(cluster: Cluster) -> None:
    """It is neither changed nor used; the condition names it, and its deletion is all that is needed."""
    cluster.client.add(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": NAME, "namespace": "default", "uid": "u"},
            "data": {"runtime": "mine"},
        }
    )
    async with cluster.managed():
        await cluster.put(train_job_object())
        assert cluster.condition("Created") == (
            "False",
            "JobsCreationFailed",
            (
                f"Failed to create Jobs: ConfigMap default/{NAME} (uid u) exists and does not belong to this TrainJob; "
                "delete it or give the TrainJob another name"
            ),
        )
        assert cluster.jobsets == []
        await cluster.client.delete(CONFIG_MAPS, NAME, "default")
        await cluster.clock.advance(1)
        assert image(cluster) == "runtime-image"


async def test_the_snapshot_of_an_earlier_train_job_of_the_name(cluster: Cluster) -> None:
    """It is not used: the new TrainJob is built on the runtime of today once the old snapshot has gone."""
    earlier = train_job_object()
    earlier["metadata"]["uid"] = "uid-of-earlier"
    cluster.client.add(make_snapshot(earlier, CLUSTER_TRAINING_RUNTIMES, runtime_object()))
    cluster.client.add(runtime_object(replicated_job("node", {"name": "trainer", "image": "newer"})))
    async with cluster.managed():
        await cluster.put(train_job_object())
        assert cluster.jobsets == []
        await cluster.client.delete(CONFIG_MAPS, NAME, "default")
        await settle()
        assert image(cluster) == "newer"


async def test_a_corrupt_snapshot_heals(cluster: Cluster) -> None:
    """Nothing but suspension reaches the Jobs until it is deleted, which the condition says."""
    async with cluster.managed():
        await cluster.put(train_job_object())
        (snapshot,) = cluster.client.objects(CONFIG_MAPS)
        await cluster.put(snapshot | {"data": {"runtime": "{}"}})
        await cluster.put(runtime_object(replicated_job("node", {"name": "trainer", "image": "newer"})))
        created = cluster.condition("Created")
        assert created is not None
        assert "ConfigMap demo-runtime-snapshot data.runtime: Invalid value: does not hold a runtime" in created[2]
        await cluster.client.delete(CONFIG_MAPS, NAME, "default")
        await settle()
        assert cluster.condition("Created") == ("True", "JobsCreationSucceeded", "Succeeded to create Jobs")


async def test_the_runtime_may_go_before_the_jobset(cluster: Cluster) -> None:
    """A JobSet that somebody deletes is made again as it was, whatever has become of the runtime."""
    async with cluster.managed():
        await cluster.put(train_job_object())
        before = cluster.jobset["spec"]
        await cluster.client.delete(CLUSTER_TRAINING_RUNTIMES, "blueprint")
        cluster.client.remove(JOBSETS, "demo", "default")
        await settle()
        assert cluster.jobset["spec"] == before


async def test_a_runtime_that_the_cluster_refuses_heals(cluster: Cluster) -> None:
    """While nothing has come of the snapshot, a better runtime of the same name takes its place."""
    for _ in range(3):
        cluster.client.faults.fail(InvalidError(422, "spec.x: Invalid value"), verb="apply", resource=JOBSETS)
    async with cluster.managed():
        await cluster.put(train_job_object())
        assert cluster.train_job["status"]["state"] == "Blocked"
        assert cluster.client.objects(CONFIG_MAPS) != []
        await cluster.client.delete(CLUSTER_TRAINING_RUNTIMES, "blueprint")
        await cluster.put(runtime_object(replicated_job("node", {"name": "trainer", "image": "better"})))
        await cluster.clock.advance(5)
        assert image(cluster) == "better"
        (snapshot,) = cluster.client.objects(CONFIG_MAPS)
        assert "better" in snapshot["data"]["runtime"]


async def test_a_manager_that_stops_before_it_tells(cluster: Cluster) -> None:
    """A JobSet that exists was built on the snapshot, though the status does not say yet that it was created."""
    async with cluster.managed():
        await cluster.put(train_job_object())
    untold = cluster.train_job
    del untold["status"]
    cluster.client.add(untold)
    cluster.client.add(runtime_object(replicated_job("node", {"name": "trainer", "image": "newer"})))
    cluster.forget_requests()
    async with cluster.managed():
        assert [request.subresource for request in cluster.client.requests_of("apply")] == ["status"]
        assert image(cluster) == "runtime-image"
        (snapshot,) = cluster.client.objects(CONFIG_MAPS)
        assert "newer" not in snapshot["data"]["runtime"]


def other_runtime(name: str = "other") -> Object:
    """A runtime that differs from `blueprint` in its image."""
    runtime = runtime_object(replicated_job("node", {"name": "trainer", "image": "other-image"}))
    return runtime | {"metadata": {"name": name}}


async def test_another_runtime_while_nothing_is_built(cluster: Cluster) -> None:
    """A TrainJob whose objects the cluster has refused moves to another runtime, and so does its snapshot."""
    for _ in range(3):
        cluster.client.faults.fail(InvalidError(422, "spec.x: Invalid value"), verb="apply", resource=JOBSETS)
    cluster.client.add(other_runtime())
    async with cluster.managed():
        await cluster.put(train_job_object())
        (snapshot,) = cluster.client.objects(CONFIG_MAPS)
        assert "runtime-image" in snapshot["data"]["runtime"]
        await cluster.change(cluster.train_job, runtimeRef={"name": "other"})
        await cluster.clock.advance(5)
        assert image(cluster) == "other-image"
        (snapshot,) = cluster.client.objects(CONFIG_MAPS)
        assert "other-image" in snapshot["data"]["runtime"]
        assert cluster.condition("Created") == ("True", "JobsCreationSucceeded", "Succeeded to create Jobs")


@pytest.mark.parametrize("reported", [pytest.param(True, id="reported"), pytest.param(False, id="untold")])
async def test_another_runtime_when_the_jobs_exist(cluster: Cluster, reported: bool) -> None:
    """A change that the API server let through, since it did not know of the Jobs yet, changes nothing of them."""
    cluster.client.add(other_runtime())
    async with cluster.managed():
        await cluster.put(train_job_object())
    before, changed = cluster.jobset["spec"], cluster.train_job
    changed["spec"]["runtimeRef"] = {"name": "other"}
    if not reported:
        del changed["status"]
    cluster.client.add(changed)
    async with cluster.managed():
        await cluster.resync()
        assert cluster.jobset["spec"] == before
        assert cluster.condition("Created") == (
            "True",
            "JobsCreationSucceeded",
            (
                "Succeeded to create Jobs; changed too late, delete the TrainJob and submit it again: spec.runtimeRef; "
                "the Jobs run ClusterTrainingRuntime/blueprint"
            ),
        )
        assert cluster.events[-1][:2] == ("Warning", "ChangesNotApplied")
        await cluster.change(cluster.train_job, suspend=True)
        assert cluster.jobset["spec"] == before | {"suspend": True}
