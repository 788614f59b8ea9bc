"""Kueue needs nothing special: it suspends TrainJobs, reads the sizes of their pod sets, and resumes them elsewhere.

When it admits a workload it writes a pod spec override for each pod set, with what its resource flavors and admission
checks ask for, and then `suspend: false`. When it evicts the workload it suspends the TrainJob, waits until no pod is
active, and takes back what it wrote. Every change is held against the rules of admission.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.controllers.conftest import Cluster
from tests.framework.samples import replicated_job, runtime_object, train_job_object
from trainer.kube.objects import Object
from trainer.webhooks.mutability import forbidden_changes

OWN_TOLERATION = {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}
SPOT_TOLERATION = {"key": "spot", "operator": "Equal", "value": "true", "effect": "NoSchedule"}
QUEUE = {"kueue.x-k8s.io/queue-name": "team-a"}

NODES: Object = {
    "targetJobs": [{"name": "node"}],
    "nodeSelector": {"cloud.example.com/capacity": "spot", "zone": "b"},
    "tolerations": [SPOT_TOLERATION],
    "schedulingGates": [{"name": "kueue.x-k8s.io/topology"}],
    "metadata": {
        "labels": {"kueue.x-k8s.io/podset": "node"},
        "annotations": {"kueue.x-k8s.io/podset-preferred-topology": "rack"},
    },
}
LOADER: Object = {
    "targetJobs": [{"name": "loader"}],
    "nodeSelector": {"zone": "c"},
    "metadata": {"labels": {"kueue.x-k8s.io/podset": "loader"}},
}


@pytest.fixture
def cluster() -> Cluster:
    """A cluster whose runtime has two pod sets, and something of each thing that Kueue adds to."""
    cluster = Cluster()
    pod = {"nodeSelector": {"zone": "a", "disk": "ssd"}, "tolerations": [OWN_TOLERATION]}
    loader = replicated_job("loader", {"name": "loader", "image": "loader-image"}, job={"parallelism": 2}, replicas=2)
    node = replicated_job("node", pod=pod)
    node["template"]["spec"]["template"]["metadata"] = {"labels": {"app": "training"}}
    cluster.client.add(runtime_object(loader, node))
    return cluster


def suspended() -> Object:
    """What a user submits to a queue; Kueue's webhook suspends it."""
    own = {"targetJobs": [{"name": "node"}], "tolerations": [{"key": "own", "operator": "Exists"}]}
    obj = train_job_object(suspend=True, trainer={"numNodes": 3}, labels=QUEUE, podSpecOverrides=[own])
    obj["metadata"]["labels"] = QUEUE
    return obj


def pods(jobset: Object) -> dict[str, Object]:
    """The pod template of each replicated Job."""
    return {job["name"]: job["template"]["spec"]["template"] for job in jobset["spec"]["replicatedJobs"]}


async def change(cluster: Cluster, **spec: object) -> None:
    """An update of the TrainJob, which admission must let through."""
    before = cluster.train_job
    assert list(forbidden_changes(before, before | {"spec": before["spec"] | spec})) == []
    await cluster.change(before, **spec)


def with_assignment(cluster: Cluster) -> list[Object]:
    """The overrides of the user, and after them what Kueue sets."""
    return [*cluster.train_job["spec"]["podSpecOverrides"], NODES, LOADER]


async def admit(cluster: Cluster) -> None:
    """What Kueue does when there is quota."""
    await change(cluster, podSpecOverrides=with_assignment(cluster))
    await change(cluster, suspend=False)


async def evict(cluster: Cluster) -> None:
    """What Kueue does when somebody else needs the quota, while the JobSet controller stops the pods."""
    await change(cluster, suspend=True)
    await cluster.run_jobset(suspended=1)
    await change(cluster, podSpecOverrides=cluster.train_job["spec"]["podSpecOverrides"][:1])


async def admit_at_once(cluster: Cluster) -> None:
    """What a queueing system may do as well: all in one update."""
    await change(cluster, suspend=False, podSpecOverrides=with_assignment(cluster))


@pytest.mark.parametrize(
    ("admission", "writes"), [pytest.param(admit, 2, id="kueue"), pytest.param(admit_at_once, 1, id="at-once")]
)
async def test_admission_reaches_the_jobset(
    cluster: Cluster, admission: Callable[[Cluster], Awaitable[None]], writes: int
) -> None:
    """All that Kueue sets is in the JobSet when it is resumed, merged with what was there; an update is one request."""
    async with cluster.managed():
        await cluster.put(suspended())
        cluster.forget_requests()
        await admission(cluster)

        assert [request.resource.kind for request in cluster.writes].count("JobSet") == writes
        assert not cluster.jobset["spec"]["suspend"]
        node, loader = pods(cluster.jobset)["node"], pods(cluster.jobset)["loader"]
        assert node["metadata"] == {
            "labels": {"app": "training", **QUEUE, "kueue.x-k8s.io/podset": "node"},
            "annotations": {"kueue.x-k8s.io/podset-preferred-topology": "rack"},
        }
        assert node["spec"]["nodeSelector"] == {"zone": "b", "disk": "ssd", "cloud.example.com/capacity": "spot"}
        assert node["spec"]["tolerations"] == [OWN_TOLERATION, {"key": "own", "operator": "Exists"}, SPOT_TOLERATION]
        assert node["spec"]["schedulingGates"] == [{"name": "kueue.x-k8s.io/topology"}]
        assert loader["metadata"]["labels"]["kueue.x-k8s.io/podset"] == "loader"
        assert loader["spec"]["nodeSelector"] == {"zone": "c"}
        assert "schedulingGates" not in loader["spec"]
        assert cluster.condition("Created") == ("True", "JobsCreationSucceeded", "Succeeded to create Jobs")
        assert cluster.condition("Suspended") == ("False", "Resumed", "TrainJob is resumed")


async def test_eviction_restores_the_jobset(cluster: Cluster) -> None:
    """The JobSet is as before the admission, and may be admitted to other nodes again."""
    async with cluster.managed():
        await cluster.put(suspended())
        before = cluster.jobset["spec"]
        await admit(cluster)
        admitted = cluster.jobset["spec"]
        await cluster.run_jobset(ready=3, active=1)
        cluster.forget_requests()
        await evict(cluster)

        assert [request.resource.kind for request in cluster.writes].count("JobSet") == 2
        assert cluster.jobset["spec"] == before
        assert cluster.condition("Suspended") == ("True", "Suspended", "TrainJob is suspended")
        await admit(cluster)
        assert cluster.jobset["spec"] == admitted
