"""Devices that pods get by claims, on the page of the cluster."""

from __future__ import annotations

from typing import Any

import pytest

from packages.dashboard.tests.conftest import UserClient, visiting
from packages.dashboard.tests.requests.test_capacity import node
from trainer.kube.errors import ForbiddenError
from trainer.kube.objects import Object
from trainer_dashboard.requests.claimed_devices import RESOURCE_CLAIMS, RESOURCE_SLICES

DRIVER = "gpu.nvidia.com"
H100 = {"productName": {"string": "NVIDIA H100"}, "type": {"string": "gpu"}, "index": {"int": 0}}


@pytest.fixture
def client() -> UserClient:
    """A cluster with three nodes, one of which is cordoned, that serves Dynamic Resource Allocation."""
    client = UserClient()
    client.serve(RESOURCE_SLICES)
    client.serve(RESOURCE_CLAIMS)
    for each in (node("a"), node("b"), node("closed", unschedulable=True)):
        client.add(each)
    return client


def gpu(name: str, attributes: Object = H100, **fields: Any) -> Object:
    """A device."""
    return {"name": name, "attributes": attributes} | fields


def resource_slice(
    name: str, on: str, *devices: Object, generation: int = 1, driver: str = DRIVER, pool: str = "", **spec: Any
) -> Object:
    """Devices of a node, or without one of all nodes."""
    where = {"nodeName": on} if on else {"allNodes": True}
    pooled = {"name": pool or on or name, "generation": generation, "resourceSliceCount": 1}
    return {
        "apiVersion": RESOURCE_SLICES.api_version,
        "kind": RESOURCE_SLICES.kind,
        "metadata": {"name": name},
        "spec": {"driver": driver, "pool": pooled, "devices": list(devices)} | where | spec,
    }


def claim(name: str, *devices: str, driver: str = DRIVER, **result: Any) -> Object:
    """A claim with these devices, given as pool and name."""
    results = [dict(zip(("pool", "device"), each.split("/"), strict=True), driver=driver) | result for each in devices]
    return {
        "apiVersion": RESOURCE_CLAIMS.api_version,
        "kind": RESOURCE_CLAIMS.kind,
        "metadata": {"name": name, "namespace": "other"},
        "status": {"allocation": {"devices": {"results": results}}} if devices else {},
    }


async def shown(client: UserClient) -> tuple[dict[tuple[str, str], tuple[Any, ...]], list[str]]:
    """Total, used, free and most on one node of each kind of device, and the problems."""
    async with visiting(client) as visitor:
        status, answer = await visitor.json("/api/capacity")
    assert status == 200
    fields = ("total", "requested", "free", "largestFree")
    kinds = {
        (kind["resource"], kind["product"]): tuple(kind[name] for name in fields)
        for kind in answer["kinds"]
        if kind["resource"] not in {"cpu", "memory"}
    }
    return kinds, answer["problems"]


def numbered(count: int) -> list[Object]:
    """Devices of one node."""
    return [gpu(f"gpu-{number}") for number in range(count)]


SHARED: dict[str, Any] = {"sharedCounters": [{"name": "gpu-0", "counters": {"memory": {"value": "80Gi"}}}]}


def part(name: str, memory: str, **attributes: str) -> Object:
    """A device that takes memory of the GPU that it is a part of."""
    consumes = [{"counterSet": "gpu-0", "counters": {"memory": {"value": memory}}}]
    named = {key: {"string": value} for key, value in attributes.items()}
    return gpu(name, H100 | named, consumesCounters=consumes)


@pytest.mark.parametrize(
    ("objects", "kinds"),
    [
        pytest.param([], {}, id="nothing"),
        pytest.param(
            [
                resource_slice("s", "a", *numbered(8)),
                resource_slice("t", "b", *numbered(4)),
                claim("c", "a/gpu-0", "b/gpu-1"),
            ],
            {(DRIVER, "NVIDIA H100"): (12, 2, 10, 7)},
            id="two-nodes",
        ),
        pytest.param(
            [
                resource_slice("s", "a", *numbered(2)),
                resource_slice("t", "closed", *numbered(4)),
                claim("c", "closed/gpu-1"),
            ],
            {(DRIVER, "NVIDIA H100"): (6, 1, 2, 2)},
            id="cordoned-node",
        ),
        pytest.param(
            [resource_slice("s", "a", *numbered(2)), claim("pending"), claim("gone", "a/gpu-7", "z/gpu-0")],
            {(DRIVER, "NVIDIA H100"): (2, 0, 2, 2)},
            id="claims-without-devices-that-are-there",
        ),
        pytest.param(
            [resource_slice("s", "a", *numbered(2)), claim("one", "a/gpu-0"), claim("two", "a/gpu-0")],
            {(DRIVER, "NVIDIA H100"): (2, 1, 1, 1)},
            id="shared-by-claims",
        ),
        pytest.param(
            [resource_slice("s", "a", *numbered(2)), claim("monitor", "a/gpu-0", adminAccess=True)],
            {(DRIVER, "NVIDIA H100"): (2, 0, 2, 2)},
            id="admin-access",
        ),
        pytest.param(
            [resource_slice("old", "a", *numbered(8)), resource_slice("new", "a", *numbered(6), generation=2)],
            {(DRIVER, "NVIDIA H100"): (6, 0, 6, 6)},
            id="new-generation-of-a-pool",
        ),
        pytest.param(
            [resource_slice("s", "a", gpu("gpu-0"), gpu("gpu-1", taints=[{"key": "broken", "effect": "NoExecute"}]))],
            {(DRIVER, "NVIDIA H100"): (2, 0, 1, 1)},
            id="tainted",
        ),
        pytest.param(
            [
                resource_slice("s", "a", gpu("gpu-0"), gpu("gpu-1", {f"{DRIVER}/model": {"string": "B200"}})),
                resource_slice("n", "b", gpu("nic-0", {}), driver="dra.net"),
                claim("c", "b/nic-0", driver="dra.net"),
                claim("d", "a/gpu-0", driver="dra.net"),
            ],
            {
                ("dra.net", ""): (1, 1, 0, 0),
                (DRIVER, "B200"): (1, 0, 1, 1),
                (DRIVER, "NVIDIA H100"): (1, 0, 1, 1),
            },
            id="drivers-and-products",
        ),
        pytest.param(
            [resource_slice("s", "", *numbered(3), pool="rack"), claim("c", "rack/gpu-2")],
            {(DRIVER, "NVIDIA H100"): (3, 1, 2, 2)},
            id="reached-from-all-nodes",
        ),
        pytest.param(
            [
                resource_slice(
                    "s", "a", part("gpu-0", "80Gi"), *(part(f"mig-{n}", "10Gi", profile="1g.10gb") for n in range(7))
                ),
                resource_slice("t", "a", **SHARED),
                claim("c", "a/mig-0", "a/mig-1"),
            ],
            {(DRIVER, "NVIDIA H100"): (1, 0, 0, 0), (DRIVER, "NVIDIA H100 1g.10gb"): (7, 2, 5, 5)},
            id="partitions-in-use",
        ),
        pytest.param(
            [
                resource_slice("s", "a", part("gpu-0", "80Gi"), part("mig-0", "10Gi", profile="1g.10gb"), **SHARED),
                claim("c", "a/gpu-0"),
            ],
            {(DRIVER, "NVIDIA H100"): (1, 1, 0, 0), (DRIVER, "NVIDIA H100 1g.10gb"): (1, 0, 0, 0)},
            id="whole-in-use",
        ),
        pytest.param(
            [
                resource_slice(
                    "s",
                    "a",
                    gpu("g", {"productName": 5}, consumesCounters=[{"counters": {"memory": {"value": "much"}}}]),
                )
            ],
            {(DRIVER, ""): (1, 0, 1, 1)},
            id="unreadable-values",
        ),
    ],
)
async def test_devices(
    client: UserClient, objects: list[Object], kinds: dict[tuple[str, str], tuple[int, int, int, int]]
) -> None:
    """Devices are counted by driver and product: all, those of claims, and those that a claim could get."""
    for each in objects:
        client.add(each)
    assert await shown(client) == (kinds, [])


@pytest.mark.parametrize(
    ("forbidden", "counts", "problem"),
    [
        pytest.param("slices", None, "devices that pods have by claims are not known: no", id="slices"),
        pytest.param("claims", (2, None, None, None), "what claims have of devices is not known: no", id="claims"),
    ],
)
async def test_rights(client: UserClient, forbidden: str, counts: tuple[Any, ...] | None, problem: str) -> None:
    """What the user may not list is named, and what they may list is shown."""
    client.add(resource_slice("s", "a", *numbered(2)))
    resource = RESOURCE_SLICES if forbidden == "slices" else RESOURCE_CLAIMS
    client.faults.fail(ForbiddenError(403, "no"), verb="list", resource=resource)
    kinds, problems = await shown(client)
    assert kinds.get((DRIVER, "NVIDIA H100")) == counts
    assert problems == [problem]


async def test_not_served() -> None:
    """Where the API server knows no ResourceSlices, nothing is said about them, and no claims are read."""
    client = UserClient()
    client.add(node("a", 8, "A100"))
    kinds, problems = await shown(client)
    assert (list(kinds), problems) == ([("nvidia.com/gpu", "A100")], [])
    assert not [request for request in client.requests if request.resource == RESOURCE_CLAIMS]
