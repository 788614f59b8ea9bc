"""Extended resources on the Node."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from trainer.kube.manager.manager import Manager
from trainer.kube.objects import Object
from trainer.kube.resource import NODES
from trainer_devcluster.kubelet.node import Advertisement
from trainer_kube_testing import FakeClient, ManualClock, eventually


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        pytest.param({"example.com/gpu": "4"}, {"example.com/gpu": "4"}, id="changed"),
        pytest.param({"example.com/gpu": None}, {}, id="withdrawn"),
    ],
)
async def test_advertisement(patch: dict[str, Any], expected: Object) -> None:
    """What is patched into the capacity becomes allocatable; CPUs stay as they are."""
    status = {"capacity": {"cpu": "2", "example.com/gpu": "1"}, "allocatable": {"cpu": "1", "example.com/gpu": "1"}}
    clock = ManualClock()
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "laptop"}, "status": status}
    client = FakeClient(node, clock=clock)
    manager = Manager(client, clock=clock)
    Advertisement(manager, "laptop")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        await manager.wait_for_start()
        await client.patch(NODES, "laptop", {"status": {"capacity": patch}}, subresource="status")
        await eventually(
            lambda: client.objects(NODES)[0]["status"]["allocatable"] == {"cpu": "1"} | expected, clock=clock
        )
        tasks.cancel_scope.cancel()
