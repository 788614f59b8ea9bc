"""JobSets that somebody other than the TrainJob suspends and resumes: Kueue at the level of JobSets, administrators."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tests.controllers.conftest import RESOURCES, Cluster
from tests.framework.samples import runtime_object, train_job_object
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.kube.client import ObjectRequest, Verb
from trainer.kube.objects import Object
from trainer.kube.resource import CONFIG_MAPS
from trainer.workloads import JOBSETS
from trainer_kube_testing import FakeClient, settle

SELECTOR = {"cloud.example.com/capacity": "spot"}


async def patch(cluster: Cluster, *, suspend: bool, selector: Any = None) -> None:
    """What somebody else does to the JobSet, and time for the manager to undo it."""
    jobset = cluster.jobset
    jobset["spec"]["suspend"] = suspend
    pod = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    if selector is not None:
        pod["spec"]["nodeSelector"] = selector
    await cluster.client.patch(JOBSETS, "demo", {"spec": jobset["spec"]}, "default", field_manager="kueue")
    await settle()
    await look_twice(cluster)


async def look_twice(cluster: Cluster) -> None:
    """News is held back for a second."""
    await cluster.resync()
    await cluster.clock.advance(2)


def state(cluster: Cluster) -> str:
    """The state of the TrainJob."""
    found: str = cluster.train_job["status"]["state"]
    return found


async def test_a_jobset_stays_suspended_until_it_is_resumed(cluster: Cluster) -> None:
    """A JobSet that another client suspended stays so through reconciles and restarts; the state shows it, without a
    request."""
    async with cluster.managed():
        await cluster.put(train_job_object(labels={"kueue.x-k8s.io/queue-name": "team-a"}))
        await patch(cluster, suspend=True)
        assert cluster.jobset["spec"]["suspend"] is True
        assert state(cluster) == "Pending"
        assert cluster.condition("Pending") == (
            "True",
            "JobSetSuspended",
            "waits in Kueue's queue team-a",
        )
        cluster.forget_requests()
        await look_twice(cluster)
        assert cluster.writes == []
    async with cluster.managed():
        await look_twice(cluster)
        assert cluster.jobset["spec"]["suspend"] is True
        await patch(cluster, suspend=False, selector=SELECTOR)
        pod = cluster.jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
        assert pod["spec"]["nodeSelector"] == SELECTOR, "what was set at admission to a queue stays"
        assert state(cluster) == "Created"


class SuspendingClient(FakeClient):
    """A cluster where a mutating webhook suspends JobSets, as queues do."""

    async def send(self, request: ObjectRequest) -> Object | None:
        """See `Client.send`."""
        if request.verb is Verb.APPLY and request.resource == JOBSETS:
            cast("Object", request.body)["spec"]["suspend"] = True
        return await super().send(request)


async def test_a_jobset_that_is_created_suspended(cluster: Cluster) -> None:
    """What suspends a JobSet when it is created is shown, although nothing happens to the JobSet afterwards."""
    cluster.client = SuspendingClient(runtime_object(), resources=RESOURCES, clock=cluster.clock)
    async with cluster.managed():
        await cluster.put(train_job_object())
        await cluster.clock.advance(2)
        await settle()
        assert state(cluster) == "Pending"


@pytest.mark.parametrize("has_runtime", [True, False])
async def test_the_train_job_has_the_say_when_it_changes(cluster: Cluster, has_runtime: bool) -> None:
    """Suspending and resuming the TrainJob suspends and resumes the JobSet, also if another client suspended it."""
    async with cluster.managed():
        await cluster.put(train_job_object())
        if not has_runtime:
            await cluster.client.delete(CLUSTER_TRAINING_RUNTIMES, "blueprint")
            await cluster.client.delete(CONFIG_MAPS, "demo-runtime-snapshot", "default")
        for _ in range(2):
            await patch(cluster, suspend=True)
            assert state(cluster) == "Pending"
            await cluster.change(cluster.train_job, suspend=True)
            assert state(cluster) == "Suspended"
            await cluster.change(cluster.train_job, suspend=False)
            assert cluster.jobset["spec"]["suspend"] is False
            assert state(cluster) == "Created"


async def test_others_resume_what_the_train_job_has_suspended(cluster: Cluster) -> None:
    """Pods run, so the state is not Suspended; to resume and suspend the TrainJob again stops them."""
    async with cluster.managed():
        await cluster.put(train_job_object(suspend=True))
        await patch(cluster, suspend=False)
        await cluster.run_jobset(active=1, ready=1)
        assert cluster.jobset["spec"]["suspend"] is False
        assert cluster.condition("Suspended") == (
            "False",
            "Resumed",
            "TrainJob is suspended, but somebody else has resumed its Jobs; resume and suspend it to stop them",
        )
        assert state(cluster) == "Running"
        cluster.forget_requests()
        await look_twice(cluster)
        assert cluster.writes == []
        for suspend in (False, True):
            await cluster.change(cluster.train_job, suspend=suspend)
            assert cluster.jobset["spec"]["suspend"] == suspend
        assert state(cluster) == "Suspended"


async def test_a_stale_cache_does_not_resume(cluster: Cluster) -> None:
    """What is applied besides `suspend` is refused where somebody has suspended or resumed the JobSet meanwhile."""
    async with cluster.managed():
        await cluster.put(train_job_object(suspend=True))
        cluster.client.faults.hold_watches(JOBSETS)
        jobset = cluster.jobset
        resumed = {"spec": jobset["spec"] | {"suspend": False}}
        await cluster.client.peer().patch(JOBSETS, "demo", resumed, "default", field_manager="kueue")
        await cluster.change(cluster.train_job, labels={"a": "b"})
        assert cluster.jobset["spec"]["suspend"] is False
        cluster.client.faults.release()
        await cluster.clock.advance(5)
        assert cluster.jobset["spec"]["suspend"] is False


async def test_annotations_of_the_train_job_decide_nothing(cluster: Cluster) -> None:
    """The note of what it has decided is ours."""
    async with cluster.managed():
        await cluster.put(train_job_object(annotations={"trainer.kubeflow.org/suspend": "true"}))
        await look_twice(cluster)
        assert "trainer.kubeflow.org/suspend" not in cluster.jobset["metadata"]["annotations"]
        cluster.client.add(runtime_object())
        await patch(cluster, suspend=True)
        assert cluster.jobset["spec"]["suspend"] is True
