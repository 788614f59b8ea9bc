"""What may be had of Kueue's ClusterQueues."""

from __future__ import annotations

from typing import Any

import pytest

from packages.dashboard.tests.conftest import UserClient, visiting
from trainer.explain.suspension import WORKLOADS
from trainer.kube.errors import ForbiddenError
from trainer.kube.objects import Object
from trainer.kube.resource import Resource
from trainer_dashboard.requests.quotas import QUEUES_SHOWN

CLUSTER_QUEUES = [
    Resource(each.group, each.version, "clusterqueues", "ClusterQueue", namespaced=False) for each in WORKLOADS
]


def cluster_queue(resource: Resource, name: str = "research", **spec: Any) -> Object:
    """A queue with GPUs and CPUs of one flavor, some of which are reserved."""
    quotas = [
        {"name": "cpu", "nominalQuota": "64"},
        {"name": "nvidia.com/gpu", "nominalQuota": 8},
    ]
    reserved = {"name": "h100", "resources": [{"name": "nvidia.com/gpu", "total": "10", "borrowed": "2"}]}
    active = {"type": "Active", "status": "True", "message": "Can admit new workloads"}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name},
        "spec": {"resourceGroups": [{"flavors": [{"name": "h100", "resources": quotas}]}]} | spec,
        "status": {
            "pendingWorkloads": 3,
            "admittedWorkloads": 2,
            "flavorsReservation": [reserved],
            "conditions": [active],
        },
    }


async def answer(client: UserClient) -> Any:
    async with visiting(client) as visitor:
        return (await visitor.json("/api/queues"))[1]


@pytest.mark.parametrize(
    ("index", "cohort"),
    [pytest.param(0, {"cohortName": "all"}, id="v1beta2"), pytest.param(1, {"cohort": "all"}, id="v1beta1")],
)
async def test_quotas(client: UserClient, index: int, cohort: Object) -> None:
    """A queue has its quota of each resource with what is reserved of it, GPUs first, in both versions of Kueue."""
    client.serve(WORKLOADS[index])
    client.serve(CLUSTER_QUEUES[index])
    client.add(cluster_queue(CLUSTER_QUEUES[index], **cohort))
    (queue,) = (await answer(client))["clusterQueues"]
    counts = {key: queue[key] for key in ("name", "cohort", "stopped", "waiting", "admitted")}
    assert counts == {"name": "research", "cohort": "all", "stopped": "", "waiting": 3, "admitted": 2}
    assert queue["quotas"] == [
        {"flavor": "h100", "resource": "nvidia.com/gpu", "nominal": 8, "reserved": 10, "borrowed": 2},
        {"flavor": "h100", "resource": "cpu", "nominal": 64, "reserved": 0, "borrowed": 0},
    ]


@pytest.mark.parametrize(
    ("condition", "stopped"),
    [
        pytest.param({"status": "False", "message": "is stopped by its administrator"}, "is stopped by", id="stopped"),
        pytest.param({"status": "False"}, "it is not active", id="without-a-reason"),
        pytest.param({"status": "True", "message": "Can admit"}, "", id="active"),
    ],
)
async def test_stopped(client: UserClient, condition: Object, stopped: str) -> None:
    """A queue that admits nothing says why."""
    client.serve(WORKLOADS[0])
    client.serve(CLUSTER_QUEUES[0])
    queue = cluster_queue(CLUSTER_QUEUES[0])
    queue["status"]["conditions"] = [{"type": "Active"} | condition]
    queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] = "lots"
    client.add(queue)
    (shown,) = (await answer(client))["clusterQueues"]
    assert (shown["stopped"][: len(stopped) or None], shown["quotas"][1]["nominal"]) == (stopped, 0)


async def test_forbidden(client: UserClient) -> None:
    """Who may not list ClusterQueues sees the queues of namespaces alone, and it is not said that there are none."""
    client.serve(WORKLOADS[0])
    client.serve(CLUSTER_QUEUES[0])
    client.faults.fail(ForbiddenError(403, "no"), verb="list", resource=CLUSTER_QUEUES[0])
    shown = await answer(client)
    assert (shown["clusterQueues"], shown["problems"]) == (None, [])


async def test_many(client: UserClient) -> None:
    """A page has a part of very many queues, and says how many more there are."""
    client.serve(WORKLOADS[0])
    client.serve(CLUSTER_QUEUES[0])
    for number in range(QUEUES_SHOWN + 2):
        client.add(cluster_queue(CLUSTER_QUEUES[0], f"queue-{number:03}"))
    shown = await answer(client)
    assert (len(shown["clusterQueues"]), shown["moreClusterQueues"]) == (QUEUES_SHOWN, 2)
