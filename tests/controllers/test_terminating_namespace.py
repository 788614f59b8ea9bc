"""TrainJobs in a namespace that is being deleted."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from tests.controllers.conftest import Cluster
from tests.framework.samples import replicated_job, runtime_object, train_job_object
from trainer.kube.errors import NamespaceTerminatingError
from trainer.kube.objects import Object
from trainer.kube.resource import CONFIG_MAPS, SECRETS
from trainer.workloads import JOBSETS
from trainer_kube_testing import settle

TERMINATING = NamespaceTerminatingError(403, "unable to create new content in namespace default")


def mpi_runtime() -> Object:
    """A runtime whose TrainJobs have a Secret and a ConfigMap beside their JobSet."""
    return runtime_object(
        replicated_job("node"), replicated_job("launcher"), policy={"numNodes": 2, "mpi": {"numProcPerNode": 1}}
    )


@pytest.fixture
def refusing(cluster: Cluster) -> Cluster:
    """A cluster that creates nothing from the start."""
    cluster.client.add(mpi_runtime())
    for verb in ("create", "apply"):
        for resource in (JOBSETS, SECRETS, CONFIG_MAPS):
            cluster.client.faults.fail(TERMINATING, verb=verb, resource=resource, times=None)
    return cluster


async def test_what_goes_before_its_trainjob(cluster: Cluster) -> None:
    """Each child that is gone costs one refused request at most, and the status stays as it was."""
    cluster.client.add(mpi_runtime())
    async with cluster.managed():
        await cluster.put(train_job_object())
        await cluster.run_jobset(active=1, ready=1)
        for verb in ("create", "apply"):
            cluster.client.faults.fail(TERMINATING, verb=verb, times=None)
        status, events = cluster.train_job["status"], cluster.events
        cluster.forget_requests()
        children = [
            (resource, obj["metadata"]["name"])
            for resource in (JOBSETS, CONFIG_MAPS, SECRETS)
            for obj in cluster.client.objects(resource)
        ]
        with capture_logs() as logs:
            for resource, name in children:
                cluster.client.remove(resource, name, "default")
                await settle()
            await cluster.clock.advance(25)
        assert cluster.train_job["status"] == status
        assert cluster.events == events
    assert len(children) >= 3
    assert 0 < len(cluster.writes) <= len(children)
    assert {entry["event"] for entry in logs if entry["log_level"] != "debug"} == {
        "gave up the reconcile, its namespace is being deleted"
    }


async def test_what_is_new(refusing: Cluster) -> None:
    """A TrainJob whose objects have yet to be made gets one look, and no condition that blames it."""
    async with refusing.managed():
        await refusing.put(train_job_object())
        await refusing.clock.advance(25)
        assert "status" not in refusing.train_job
        assert len(refusing.writes) == 1
        assert refusing.events == []
