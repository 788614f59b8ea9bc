"""SSH keys of MPI trainings that somebody deletes."""

from __future__ import annotations

import pytest

from tests.controllers.conftest import Cluster
from tests.framework.samples import pod_metadata, replicated_job, runtime_object, train_job, train_job_object
from trainer.framework.plugin_api.component import unique_name
from trainer.kube.objects import Object
from trainer.kube.resource import SECRETS
from trainer.workloads import JOBSETS
from trainer_kube_testing import settle

NAME = unique_name(train_job(), "mpi-ssh-auth")


def mpi_runtime() -> Object:
    """A runtime of a launcher and two nodes."""
    return runtime_object(
        replicated_job("node"), replicated_job("launcher"), policy={"numNodes": 2, "mpi": {"numProcPerNode": 1}}
    )


def pod(name: str, *, phase: str = "Pending") -> Object:
    """A pod of the JobSet that needs the key."""
    volume = {"name": "mpi-ssh-auth", "secret": {"secretName": NAME}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": pod_metadata(name) | {"uid": f"uid-of-{name}"},
        "spec": {"volumes": [volume]},
        "status": {"phase": phase},
    }


def failed_mount(of: str) -> Object:
    """What the kubelet says while the Secret is missing."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{of}.1", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "name": of, "namespace": "default", "uid": f"uid-of-{of}"},
        "reason": "FailedMount",
        "message": f'MountVolume.SetUp failed for volume "mpi-ssh-auth" : secret "{NAME}" not found',
        "type": "Warning",
    }


def key(cluster: Cluster) -> Object | None:
    """The Secret."""
    return cluster.client.find(SECRETS, NAME, "default")


@pytest.mark.parametrize("restarts", [False, True])
async def test_a_key_that_is_lost_while_suspended(cluster: Cluster, restarts: bool) -> None:
    """It is created again with the resume, before the JobSet is resumed, with one request."""
    cluster.client.add(mpi_runtime())
    async with cluster.managed():
        await cluster.put(train_job_object(suspend=True))
        assert key(cluster) is not None
        cluster.client.remove(SECRETS, NAME, "default")
        await cluster.resync()
        assert key(cluster) is None
        if not restarts:
            await resume(cluster)
    if restarts:
        await cluster.change(cluster.train_job, suspend=False)
        cluster.forget_requests()
        async with cluster.managed():
            check_order(cluster)


async def resume(cluster: Cluster) -> None:
    """The user resumes the TrainJob."""
    cluster.forget_requests()
    await cluster.change(cluster.train_job, suspend=False)
    check_order(cluster)
    cluster.forget_requests()
    await cluster.resync()
    assert cluster.writes == []


def check_order(cluster: Cluster) -> None:
    """The key comes before the pods."""
    writes = [request.resource for request in cluster.writes if request.resource in (SECRETS, JOBSETS)]
    assert writes == [SECRETS, JOBSETS]
    assert key(cluster) is not None


async def test_a_key_that_is_lost_before_the_jobset_is_made_anew(cluster: Cluster) -> None:
    """A deleted Secret and JobSet are both created again."""
    cluster.client.add(mpi_runtime())
    async with cluster.managed():
        await cluster.put(train_job_object())
        cluster.client.remove(SECRETS, NAME, "default")
        cluster.client.remove(JOBSETS, "demo", "default")
        await settle()
        assert len(cluster.jobsets) == 1
        assert key(cluster) is not None


async def test_a_key_that_no_pod_could_mount(cluster: Cluster) -> None:
    """A lost Secret is created again when a kubelet reports it missing, once per pod; reconciles send no request."""
    cluster.client.add(mpi_runtime())
    async with cluster.managed():
        await cluster.put(train_job_object())
        cluster.client.remove(SECRETS, NAME, "default")
        for name in ("a", "b"):
            cluster.client.add(pod(name))
        await settle()
        cluster.forget_requests()
        await cluster.put(failed_mount("a"))
        await cluster.clock.advance(1)  # events of the pods of a job are waited for
        assert key(cluster) is not None
        for _ in range(3):
            await cluster.resync()
        assert len(cluster.client.requests_of("create")) == 1


async def test_a_key_that_some_pods_have_mounted(cluster: Cluster) -> None:
    """Another key would not let them talk to each other: those that miss it wait, and the condition says for what."""
    cluster.client.add(mpi_runtime())
    async with cluster.managed():
        await cluster.put(train_job_object())
        cluster.client.remove(SECRETS, NAME, "default")
        cluster.client.add(pod("a"))
        cluster.client.add(pod("b", phase="Running"))
        await settle()
        await cluster.put(failed_mount("a"))
        await cluster.clock.advance(1)  # events of the pods of a job are waited for
        await cluster.resync()
        await cluster.clock.advance(2)
        assert key(cluster) is None
        pending = cluster.condition("Pending")
        assert pending is not None
        assert f'secret "{NAME}" not found' in pending[2]
        for suspend in (True, False):
            await cluster.change(cluster.train_job, suspend=suspend)
        assert key(cluster) is not None
