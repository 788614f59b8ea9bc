"""A manager on a cluster whose CustomResourceDefinition of TrainJobs is that of 0.1."""

from __future__ import annotations

import pytest

from tests.controllers.conftest import Cluster
from tests.controllers.test_states import RUNNING
from tests.framework.samples import train_job_object
from tests.plugins.test_jobset_pod_problems import CULPRIT, READY, RESTARTING, going, pod
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.client import ObjectRequest
from trainer.kube.errors import InternalError, InvalidError
from trainer.kube.objects import Object
from trainer.kube.resource import PODS
from trainer_kube_testing import FakeClient

ADVICE = "apply the CRDs of this version"


class OlderCluster(FakeClient):
    """Has no `status.restarts` and no state Stopping, and refuses them as the API server does."""

    is_old = True

    async def send(self, request: ObjectRequest) -> Object | None:
        """See `FakeClient.send`."""
        status = request.body.get("status") if isinstance(request.body, dict) else None
        if self.is_old and request.resource == TRAIN_JOBS and status:
            if "restarts" in status:
                raise InternalError(
                    500, "failed to create typed patch object: .status.restarts: field not declared in schema"
                )
            if status.get("state") == "Stopping":
                causes = [{"reason": "FieldValueNotSupported", "field": "status.state"}]
                raise InvalidError(
                    422, 'status.state: Unsupported value: "Stopping"', status={"details": {"causes": causes}}
                )
        return await super().send(request)


@pytest.fixture
def older(cluster: Cluster) -> OlderCluster:
    """The API server of the cluster, in place of one with the definition of this version."""
    client = OlderCluster(fake_server=cluster.client.fake_server)
    cluster.client = client
    return client


async def test_a_training_that_restarts(
    cluster: Cluster, older: OlderCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """All that the definition knows is written, and once it has been replaced the number of restarts."""
    async with cluster.managed():
        await cluster.put(train_job_object())
        await cluster.run_jobset(active=1, ready=1)
        await cluster.put(CULPRIT)
        await cluster.run_jobset("", RESTARTING, active=0)
        await cluster.put(cluster.jobset | {"status": cluster.jobset["status"] | {"restarts": 1}})
        await cluster.clock.advance(1)
        assert cluster.train_job["status"]["state"] == "Restarting"
        await cluster.client.delete(PODS, "demo-node-0-0-y", "default")
        await cluster.run_jobset("", READY, active=1, ready=1)
        await cluster.put(cluster.jobset | {"status": cluster.jobset["status"] | {"restarts": 1}})
        await cluster.clock.advance(1)
        assert cluster.train_job["status"]["state"] == "Running"
        cluster.forget_requests()
        await cluster.resync()
        assert not [each for each in cluster.writes if each.resource == TRAIN_JOBS], "a status was written needlessly"
        assert capsys.readouterr().out.count(ADVICE) == 1

        older.is_old = False
        await cluster.clock.advance(600)
        await cluster.resync()
        assert cluster.train_job["status"]["restarts"]["failures"] == 1


async def test_a_training_that_stops(cluster: Cluster, older: OlderCluster, capsys: pytest.CaptureFixture[str]) -> None:
    """What is stopping is Suspended at once, as in 0.1."""
    async with cluster.managed():
        await cluster.put(train_job_object())
        await cluster.put(pod(**RUNNING))
        await cluster.run_jobset(active=1, ready=1)
        await cluster.change(cluster.train_job, suspend=True)
        await cluster.put(going("demo-node-0-0-a"))
        await cluster.clock.advance(2)
        assert cluster.train_job["status"]["state"] == "Suspended"
        await cluster.client.delete(PODS, "demo-node-0-0-a", "default")
        await cluster.clock.advance(2)
        assert cluster.train_job["status"]["state"] == "Suspended"
    assert capsys.readouterr().out.count(ADVICE) == 1
