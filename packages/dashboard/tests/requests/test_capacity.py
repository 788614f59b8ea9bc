"""What the cluster has, and what is requested of it."""

from __future__ import annotations

from typing import Any

import pytest

from packages.dashboard.tests.conftest import UserClient, visiting
from trainer.api.trainingruntime import TRAINING_RUNTIMES
from trainer.explain.suspension import WORKLOADS
from trainer.kube.errors import ForbiddenError
from trainer.kube.objects import Object
from trainer.kube.resource import NODES, PODS, Resource

GPU = "nvidia.com/gpu"


def node(name: str, gpus: int = 0, product: str = "", *, ready: str = "True", **spec: Any) -> Object:
    """A node with 8 CPUs."""
    allocatable = {"cpu": "8", "memory": "32Gi", "ephemeral-storage": "1Ti"} | ({GPU: str(gpus)} if gpus else {})
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"nvidia.com/gpu.product": product} if product else {}},
        "spec": spec,
        "status": {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": ready}]},
    }


def pod(name: str, on: str, gpus: int, phase: str = "Running", cpu: str = "500m") -> Object:
    """A pod of anybody."""
    requests = {"cpu": cpu} | ({GPU: str(gpus)} if gpus else {})
    spec: Object = {"containers": [{"name": "c", "resources": {"requests": requests}}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "other"},
        "spec": spec | ({"nodeName": on} if on else {}),
        "status": {"phase": phase},
    }


async def test_capacity(client: UserClient) -> None:
    """Devices are counted by product, without pods that have ended or run nowhere, and what is free on open nodes."""
    for each in (
        node("a", 8, "A100"),
        node("b", 8, "A100"),
        node("closed", 8, "A100", unschedulable=True),
        node("lost", 4, "H100", ready="Unknown"),
        node("plain"),
        pod("one", "a", 2),
        pod("two", "a", 1),
        pod("three", "closed", 3),
        pod("ended", "b", 8, phase="Succeeded"),
        pod("failed", "b", 8, phase="Failed"),
        pod("waiting", "", 8, phase="Pending"),
        pod("strange", "b", 1, cpu="lots"),
    ):
        client.add(each)
    async with visiting(client) as visitor:
        _, answer = await visitor.json("/api/capacity")
    shown = {(kind["resource"], kind["product"]): kind for kind in answer["kinds"]}
    assert list(shown) == [(GPU, "A100"), (GPU, "H100"), ("cpu", ""), ("memory", "")]
    assert shown[GPU, "A100"] == {
        "resource": GPU,
        "product": "A100",
        "nodes": 3,
        "total": 24,
        "requested": 6,
        "used": None,
        "free": 13,
        "largestFree": 8,
    }
    assert (shown[GPU, "H100"]["free"], shown["cpu", ""]["requested"]) == (0, 1.5)
    assert (answer["nodes"], answer["closedNodes"], answer["problems"], answer["notes"]) == (5, 2, [], [])


async def test_pods_that_may_not_be_listed(client: UserClient) -> None:
    """Who may not list all pods sees what there is, and that what is requested is not known."""
    client.add(node("a", 8))
    client.faults.fail(ForbiddenError(403, "pods is forbidden"), verb="list", resource=PODS)
    async with visiting(client) as visitor:
        _, answer = await visitor.json("/api/capacity")
    kind = answer["kinds"][0]
    assert (kind["total"], kind["requested"], kind["free"], kind["largestFree"]) == (8, None, None, None)
    assert (len(answer["notes"]), answer["problems"]) == (1, [])
    assert "you may not list the pods of all namespaces" in answer["notes"][0]
    (row,) = answer["members"]
    assert (row["devices"][0]["requested"], row["otherPods"], row["trainings"]) == (None, None, [])


async def test_nodes_that_may_not_be_listed(client: UserClient) -> None:
    """Who may not list nodes reads that, and nothing else."""
    client.faults.fail(ForbiddenError(403, "nodes is forbidden"), verb="list", resource=NODES)
    async with visiting(client) as visitor:
        status, answer = await visitor.json("/api/capacity")
    assert (status, answer["members"], answer["kinds"], len(answer["notes"])) == (200, [], [], 1)
    assert "you may not list nodes" in answer["notes"][0]


@pytest.mark.parametrize(
    ("path", "resource"),
    [
        pytest.param("/api/capacity", NODES, id="capacity"),
        pytest.param("/api/queues", WORKLOADS[0], id="queues"),
        pytest.param("/api/runtimes", TRAINING_RUNTIMES, id="runtimes"),
    ],
)
async def test_pages_share_an_answer(client: UserClient, path: str, resource: Resource) -> None:
    """All pages that ask within some seconds cost one count."""
    client.serve(resource)
    async with visiting(client) as visitor:
        for _ in range(5):
            await visitor.json(path)
    assert len([request for request in client.requests if request.resource == resource]) == 1
