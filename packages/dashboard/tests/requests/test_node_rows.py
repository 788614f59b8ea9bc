"""The nodes of the cluster, with their states and what is on them."""

from __future__ import annotations

from typing import Any

import pytest

from packages.dashboard.tests.conftest import UserClient, visiting
from packages.dashboard.tests.requests.test_capacity import GPU, node, pod
from trainer.kube.errors import ForbiddenError, ServiceUnavailableError
from trainer.kube.objects import Object
from trainer_dashboard.requests.claimed_devices import RESOURCE_CLAIMS, RESOURCE_SLICES
from trainer_dashboard.requests.node_rows import NODES_SHOWN
from trainer_dashboard.requests.utilisation import NODE_METRICS


def in_training(made: Object, job: str) -> Object:
    """A pod as a JobSet of this name has it."""
    return made | {"metadata": made["metadata"] | {"labels": {"jobset.sigs.k8s.io/jobset-name": job}}}


def condition(kind: str, status: str, message: str = "") -> Object:
    return {"type": kind, "status": status, "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"}


READY = condition("Ready", "True")


async def members(client: UserClient) -> list[Object]:
    """The rows that the page gets."""
    async with visiting(client) as visitor:
        _, answer = await visitor.json("/api/capacity")
    found: list[Object] = answer["members"]
    return found


async def test_trainings(client: UserClient) -> None:
    """A node has its devices, what is requested of them, and the trainings on it, that with most devices first."""
    typed = node("a", 8, "A100")
    typed["metadata"]["labels"]["node.kubernetes.io/instance-type"] = "p4d"
    for each in (
        typed,
        in_training(pod("small-0", "a", 1), "small"),
        in_training(pod("large-0", "a", 2, cpu="2"), "large"),
        in_training(pod("large-1", "a", 2), "large"),
        pod("web", "a", 0),
    ):
        client.add(each)
    (row,) = await members(client)
    assert row["devices"] == [{"resource": GPU, "product": "A100", "total": 8, "requested": 5, "free": 3}]
    assert row["cpu"] == {"total": 8, "requested": 3.5, "used": None}
    assert (row["memory"]["total"], row["instanceType"]) == (32 * 2**30, "p4d")
    assert row["trainings"] == [
        {"namespace": "other", "name": "large", "pods": 2, "devices": 4},
        {"namespace": "other", "name": "small", "pods": 1, "devices": 1},
    ]
    assert (row["moreTrainings"], row["otherPods"]) == (0, 1)


TAINT = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("conditions", "spec", "troubles", "why", "is_open"),
    [
        pytest.param([READY], {}, [], "", True, id="ready"),
        pytest.param([], {}, [], "", True, id="says-nothing"),
        pytest.param([condition("DiskPressure", "False")], {}, ["Unreachable"], "", False, id="has-not-said-yet"),
        pytest.param([condition("Ready", "False", "no CNI")], {}, ["Not ready"], "no CNI", False, id="not-ready"),
        pytest.param([condition("Ready", "Unknown", "silent")], {}, ["Unreachable"], "silent", False, id="silent"),
        pytest.param([READY], {"taints": [TAINT]}, ["Out of service"], "", False, id="out-of-service"),
        pytest.param([READY], {"unschedulable": True}, ["Cordoned"], "", False, id="cordoned"),
        pytest.param(
            [condition("MemoryPressure", "True", "out of it"), condition("DiskPressure", "True"), READY],
            {"unschedulable": True},
            ["Cordoned", "Memory pressure", "Disk pressure"],
            "out of it",
            False,
            id="pressures",
        ),
    ],
)
async def test_states(
    client: UserClient, conditions: list[Object], spec: Object, troubles: list[str], why: str, is_open: bool
) -> None:
    """A node says in words what is wrong with it, why and since when, and whether it takes pods."""
    made = node("a", 4) | {"spec": spec}
    client.add(made | {"status": made["status"] | {"conditions": conditions}})
    (row,) = await members(client)
    assert (row["troubles"], row["why"]) == (troubles, why)
    assert row["devices"][0]["free"] == (4 if is_open else 0)
    assert (row["since"] is not None) is bool(why)


def measured(name: str, **usage: Any) -> Object:
    """What metrics-server says of a node."""
    return {
        "apiVersion": NODE_METRICS.api_version,
        "kind": NODE_METRICS.kind,
        "metadata": {"name": name},
        "usage": usage,
    }


@pytest.mark.parametrize(
    ("is_served", "error", "used"),
    [
        pytest.param(True, None, 1.5, id="measured"),
        pytest.param(False, None, None, id="no-metrics-server"),
        pytest.param(True, ForbiddenError(403, "no"), None, id="forbidden"),
        pytest.param(True, ServiceUnavailableError(503, "down"), None, id="down"),
    ],
)
async def test_utilisation(client: UserClient, is_served: bool, error: Exception | None, used: float | None) -> None:
    """What is used is shown where metrics-server says it, and nothing is said about it elsewhere."""
    client.add(node("a"))
    client.add(node("unmeasured"))
    if is_served:
        client.serve(NODE_METRICS)
        client.add(measured("a", cpu="1500000000n", memory="lots"))
    if error is not None:
        client.faults.fail(error, verb="list", resource=NODE_METRICS)
    async with visiting(client) as visitor:
        _, answer = await visitor.json("/api/capacity")
    row, other = answer["members"]
    assert (row["cpu"]["used"], row["memory"]["used"], other["cpu"]["used"]) == (used, None, None)
    cpu = next(kind for kind in answer["kinds"] if kind["resource"] == "cpu")
    assert (cpu["used"], answer["problems"]) == (used, [])


async def test_claimed_devices(client: UserClient) -> None:
    """Devices that pods have by claims are those of their node as well."""
    for resource in (RESOURCE_SLICES, RESOURCE_CLAIMS):
        client.serve(resource)
    client.add(node("a"))
    spec = {
        "driver": "gpu.example.com",
        "nodeName": "a",
        "pool": {"name": "a", "generation": 1},
        "devices": [{"name": "gpu-0"}, {"name": "gpu-1"}],
    }
    slices = {"apiVersion": RESOURCE_SLICES.api_version, "kind": RESOURCE_SLICES.kind, "metadata": {"name": "a"}}
    client.add(slices | {"spec": spec})
    (row,) = await members(client)
    assert [(each["resource"], each["total"]) for each in row["devices"]] == [("gpu.example.com", 2)]


async def test_many(client: UserClient) -> None:
    """Of very many nodes those in trouble and with trainings are shown, and how many more there are."""
    for number in range(NODES_SHOWN + 5):
        client.add(node(f"n-{number:04}", unschedulable=number == NODES_SHOWN + 4))
    client.add(in_training(pod("p", f"n-{NODES_SHOWN + 3:04}", 0), "demo"))
    async with visiting(client) as visitor:
        _, answer = await visitor.json("/api/capacity")
    names = [row["name"] for row in answer["members"]]
    assert (len(names), answer["moreNodes"], answer["nodes"]) == (NODES_SHOWN, 5, NODES_SHOWN + 5)
    assert names[-2:] == [f"n-{NODES_SHOWN + 3:04}", f"n-{NODES_SHOWN + 4:04}"]
