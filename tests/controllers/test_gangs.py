"""Gangs: PodGroups of TrainJobs that wait, run and end, on a cluster whose defaults change."""

from __future__ import annotations

import pytest

from tests.controllers.conftest import Cluster
from tests.framework.samples import replicated_job, runtime_object, train_job_object
from trainer.kube.field_errors import FieldError
from trainer.kube.objects import Object, name_of
from trainer.kube.resource import LIMIT_RANGES, RUNTIME_CLASSES, Resource
from trainer.plugins import coscheduling, volcano
from trainer.workloads import JOBSETS
from trainer_kube_testing import statuses

KINDS = {"coscheduling": coscheduling.POD_GROUPS, "volcano": volcano.POD_GROUPS}

each_scheduler = pytest.mark.parametrize(
    ("scheduler", "kind"), [pytest.param(scheduler, kind, id=scheduler) for scheduler, kind in KINDS.items()]
)


def gang_runtime(scheduler: str) -> Object:
    """A runtime of two nodes in sandboxes."""
    container = {"name": "trainer", "image": "i", "resources": {"requests": {"cpu": 1}}}
    node = replicated_job("node", container, pod={"schedulerName": "gangs", "runtimeClassName": "kata"})
    return runtime_object(node, policy={"numNodes": 2}, podGroupPolicy={scheduler: {}})


def limit_range(memory: str) -> Object:
    """Memory that containers request by default."""
    limits = [{"type": "Container", "defaultRequest": {"memory": memory}}]
    metadata = {"name": "defaults", "namespace": "default"}
    return {"apiVersion": "v1", "kind": LIMIT_RANGES.kind, "metadata": metadata, "spec": {"limits": limits}}


def runtime_class(cpu: str) -> Object:
    """Sandboxes that take some CPU."""
    return {
        "apiVersion": RUNTIME_CLASSES.api_version,
        "kind": RUNTIME_CLASSES.kind,
        "metadata": {"name": "kata"},
        "handler": "kata",
        "overhead": {"podFixed": {"cpu": cpu}},
    }


def needs(cluster: Cluster, kind: Resource) -> dict[str, Object]:
    """What each gang must find free, by the name of the TrainJob."""
    return {name_of(group): group["spec"]["minResources"] for group in cluster.client.objects(kind)}


@each_scheduler
async def test_only_what_is_suspended_follows_the_cluster(cluster: Cluster, scheduler: str, kind: Resource) -> None:
    """LimitRange and RuntimeClass change the PodGroups of TrainJobs that wait, with one request for each."""
    cluster.client.serve(kind)
    cluster.client.add(gang_runtime(scheduler))
    async with cluster.managed():
        await cluster.put(train_job_object("waits", suspend=True))
        await cluster.put(train_job_object("runs"))
        assert needs(cluster, kind) == {"waits": {"cpu": "2"}, "runs": {"cpu": "2"}}
        cluster.forget_requests()

        await cluster.put(limit_range("1Gi"))
        assert needs(cluster, kind) == {"waits": {"cpu": "2", "memory": "2Gi"}, "runs": {"cpu": "2"}}

        await cluster.put(runtime_class("250m"))
        assert needs(cluster, kind) == {"waits": {"cpu": "2500m", "memory": "2Gi"}, "runs": {"cpu": "2"}}

        await cluster.put(runtime_class("250m") | {"metadata": {"name": "other"}})
        cluster.client.remove(LIMIT_RANGES, "defaults", "default")
        await cluster.clock.advance(1)
        assert needs(cluster, kind) == {"waits": {"cpu": "2500m"}, "runs": {"cpu": "2"}}

    assert [(request.verb, request.name) for request in cluster.writes] == [("apply", "waits")] * 3


@each_scheduler
async def test_a_gang_of_another_size(cluster: Cluster, scheduler: str, kind: Resource) -> None:
    """A training that is resumed with fewer nodes has a smaller gang before its pods start."""
    cluster.client.serve(kind)
    cluster.client.add(gang_runtime(scheduler))
    async with cluster.managed():
        await cluster.put(train_job_object())
        await cluster.run_jobset(active=1, ready=1)
        await cluster.change(cluster.train_job, suspend=True)
        await cluster.run_jobset(suspended=1)
        await cluster.change(cluster.train_job, trainer={"numNodes": 1}, suspend=False)
        (group,) = cluster.client.objects(kind)
        assert group["spec"]["minMember"] == 1
        assert cluster.jobset["metadata"]["deletionTimestamp"]
        await cluster.collect()
        assert cluster.client.objects(kind) == [group]
        assert "deletionTimestamp" not in cluster.jobset["metadata"]


@each_scheduler
async def test_a_gang_whose_jobset_the_cluster_refuses_heals(cluster: Cluster, scheduler: str, kind: Resource) -> None:
    """A PodGroup that exists does not bind its TrainJob to a runtime of which nothing else has come."""
    cluster.client.serve(kind)
    cluster.client.add(gang_runtime(scheduler))
    refusal = cluster.client.faults.fail(
        statuses.invalid("JobSet", JOBSETS.group, "demo", [FieldError("", "no such image")]),
        verb="apply",
        resource=JOBSETS,
        times=None,
    )
    async with cluster.managed():
        await cluster.put(train_job_object())
        assert (len(cluster.client.objects(kind)), cluster.jobsets) == (1, [])
        await cluster.put(runtime_object(replicated_job("node", {"name": "trainer", "image": "fixed"})))
        refusal.end()
        await cluster.clock.advance(60)
        (job,) = cluster.jobset["spec"]["replicatedJobs"]
        assert job["template"]["spec"]["template"]["spec"]["containers"][0]["image"] == "fixed"
        assert cluster.client.objects(kind) == []
        assert cluster.train_job["status"]["state"] == "Created"
