"""Elastic trainings from the scale subresource to the JobSet and back."""

from __future__ import annotations

from typing import cast

import pytest

from tests.controllers.conftest import RESOURCES, Cluster
from tests.framework.samples import replicated_job, runtime_object, train_job_object
from tests.scales import ScalableClient
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.kube.client import ObjectRequest, Verb
from trainer.kube.errors import ForbiddenError
from trainer.kube.objects import Object
from trainer.kube.resource import CONFIG_MAPS, HORIZONTAL_POD_AUTOSCALERS
from trainer.workloads import JOBSETS
from trainer_kube_testing import settle

METRICS = [
    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}
]
DENIED = ForbiddenError(403, 'admission webhook "vjobset.kb.io" denied the request: field is immutable')


class GatedClient(ScalableClient):
    """A cluster whose JobSet may have its feature gate off."""

    is_elastic = True

    async def send(self, request: ObjectRequest) -> Object | None:
        """See `Client.send`."""
        if request.verb is Verb.APPLY and request.resource == JOBSETS and not self.is_elastic:
            applied = cast("Object", request.body)
            if any(sizes(existing) != sizes(applied) for existing in self.objects(JOBSETS)):
                raise DENIED
        return await super().send(request)


def gate(cluster: Cluster, *, is_on: bool) -> None:
    """Switch the feature gate ElasticJobSet."""
    assert isinstance(cluster.client, GatedClient)
    cluster.client.is_elastic = is_on


@pytest.fixture
def cluster() -> Cluster:
    """An API server with an elastic runtime of one to three nodes."""
    policy = {"torch": {"elasticPolicy": {"minNodes": 1, "maxNodes": 3, "maxRestarts": 2, "metrics": METRICS}}}
    cluster = Cluster()
    resources = (*RESOURCES, HORIZONTAL_POD_AUTOSCALERS)
    cluster.client = GatedClient(
        runtime_object(replicated_job(), policy=policy), resources=resources, clock=cluster.clock
    )
    return cluster


def sizes(jobset: Object) -> tuple[int, int]:
    """Parallelism and completions of the nodes."""
    (job,) = jobset["spec"]["replicatedJobs"]
    return job["template"]["spec"]["parallelism"], job["template"]["spec"]["completions"]


async def test_scaling(cluster: Cluster) -> None:
    """Another number of nodes reaches a JobSet that runs, and the status tells what has been accepted."""
    async with cluster.managed():
        await cluster.put(train_job_object(trainer={"numNodes": 1}))
        selector = "jobset.sigs.k8s.io/jobset-name=demo,jobset.sigs.k8s.io/replicatedjob-name=node"
        scale = {"nodes": 1, "minNodes": 1, "maxNodes": 3, "selector": selector}
        assert cluster.train_job["status"]["scale"] == scale
        await cluster.run_jobset(active=1, ready=1)
        await cluster.change(cluster.train_job, trainer={"numNodes": 3})
        assert sizes(cluster.jobset) == (3, 3)
        assert cluster.train_job["status"]["scale"] == scale | {"nodes": 3}
        await cluster.change(cluster.train_job, trainer={"numNodes": 2})
        assert sizes(cluster.jobset) == (2, 2)
        cluster.client.requests.clear()
        await cluster.resync()
        assert cluster.client.requests == []
        await cluster.run_jobset("Completed", succeeded=1)
        assert cluster.train_job["status"]["scale"] == scale | {"nodes": 2}


async def test_the_order_of_train_job_and_runtime(cluster: Cluster) -> None:
    """A TrainJob without a number of nodes becomes the same objects whether or not its runtime was there before it."""
    (runtime,) = cluster.client.objects(CLUSTER_TRAINING_RUNTIMES)
    cluster.client.remove(CLUSTER_TRAINING_RUNTIMES, "blueprint")
    async with cluster.managed():
        await cluster.put(train_job_object())
        assert cluster.client.objects(JOBSETS) == []
        await cluster.put(runtime)
        cluster.client.requests.clear()
        await cluster.resync()
        assert cluster.client.requests == []
        late = cluster.jobset, *cluster.client.objects(HORIZONTAL_POD_AUTOSCALERS), cluster.train_job["spec"]
    assert late[-1]["trainer"] == {"numNodes": 1}, "an autoscaler finds a number"
    admitted = Cluster()
    admitted.client = GatedClient(runtime, resources=(*RESOURCES, HORIZONTAL_POD_AUTOSCALERS), clock=admitted.clock)
    async with admitted.managed():
        await admitted.put(train_job_object(trainer={"numNodes": 1}))
        early = admitted.jobset, *admitted.client.objects(HORIZONTAL_POD_AUTOSCALERS), admitted.train_job["spec"]
    assert [each.get("spec", each) for each in late] == [each.get("spec", each) for each in early]


async def test_a_cluster_without_elastic_jobsets(cluster: Cluster) -> None:
    """Where JobSet declines the change the nodes stay, the TrainJob says so, and the cluster is asked again later."""
    async with cluster.managed():
        await cluster.put(train_job_object(trainer={"numNodes": 1}))
        gate(cluster, is_on=False)
        await cluster.change(cluster.train_job, trainer={"numNodes": 2})
        assert sizes(cluster.jobset) == (1, 1)
        assert cluster.train_job["status"]["scale"]["nodes"] == 1
        reported = (
            f"Succeeded to create Jobs; the cluster has rejected a change: JobSet: {DENIED} (JobSet lets nodes come "
            "and go only where its feature gate ElasticJobSet is on)"
        )
        assert cluster.condition("Created") == ("True", "JobsCreationSucceeded", reported)
        assert cluster.events[-1] == ("Warning", "ChangesNotApplied", reported)

        cluster.client.requests.clear()
        await cluster.resync()
        assert cluster.client.requests == [], "the cluster has just been asked"

        gate(cluster, is_on=True)
        await cluster.clock.advance(301)
        await settle()
        assert sizes(cluster.jobset) == (2, 2)
        assert cluster.condition("Created") == ("True", "JobsCreationSucceeded", "Succeeded to create Jobs")


@pytest.mark.parametrize("is_on", [True, False])
async def test_scaling_while_suspended(cluster: Cluster, is_on: bool) -> None:
    """Its JobSet is made anew, also where JobSet lets no nodes come and go."""
    async with cluster.managed():
        await cluster.put(train_job_object(trainer={"numNodes": 1}))
        await cluster.run_jobset(active=1, ready=1)
        gate(cluster, is_on=is_on)
        await cluster.change(cluster.train_job, suspend=True)
        await cluster.run_jobset(suspended=1)
        await cluster.change(cluster.train_job, trainer={"numNodes": 3})
        await cluster.collect()
        await cluster.change(cluster.train_job, suspend=False)
        assert sizes(cluster.jobset) == (3, 3)
        assert cluster.train_job["status"]["scale"]["nodes"] == 3
        assert cluster.condition("Created") == ("True", "JobsCreationSucceeded", "Succeeded to create Jobs")


async def test_the_autoscaler_lives_as_long_as_the_training(cluster: Cluster) -> None:
    """It scales the TrainJob, goes while that is suspended, comes back, and goes for good at the end."""
    async with cluster.managed():
        await cluster.put(train_job_object(trainer={"numNodes": 1}))
        (autoscaler,) = cluster.client.objects(HORIZONTAL_POD_AUTOSCALERS)
        spec = autoscaler["spec"]
        assert (spec["minReplicas"], spec["maxReplicas"], spec["metrics"]) == (1, 3, METRICS)
        assert spec["scaleTargetRef"] == {
            "apiVersion": "trainer.kubeflow.org/v2alpha1",
            "kind": "TrainJob",
            "name": "demo",
        }
        await cluster.change(cluster.train_job, suspend=True)
        assert cluster.client.objects(HORIZONTAL_POD_AUTOSCALERS) == []
        await cluster.change(cluster.train_job, suspend=False)
        assert len(cluster.client.objects(HORIZONTAL_POD_AUTOSCALERS)) == 1
        await cluster.run_jobset("Completed", succeeded=1)
        assert cluster.client.objects(HORIZONTAL_POD_AUTOSCALERS) == []
        await cluster.resync()
        assert cluster.client.objects(HORIZONTAL_POD_AUTOSCALERS) == []


async def test_another_runtime_in_place_of_a_deleted_snapshot(cluster: Cluster) -> None:
    """Objects that the runtime of now does not ask for are deleted, although the TrainJob changes no more."""
    async with cluster.managed():
        await cluster.put(train_job_object(trainer={"numNodes": 2}))
        await cluster.put(runtime_object(replicated_job(), policy={"torch": {}, "numNodes": 2}))
        assert len(cluster.client.objects(HORIZONTAL_POD_AUTOSCALERS)) == 1
        await cluster.client.delete(CONFIG_MAPS, "demo-runtime-snapshot", "default")
        await settle()
        assert cluster.client.objects(HORIZONTAL_POD_AUTOSCALERS) == []
