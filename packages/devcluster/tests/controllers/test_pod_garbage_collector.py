"""Deleted pods that no kubelet ends, on an API server in memory."""

from __future__ import annotations

import anyio
import pytest

from trainer.kube.manager.manager import Manager
from trainer.kube.objects import Object
from trainer.kube.resource import PODS
from trainer_devcluster.controllers.pod_garbage_collector import register
from trainer_kube_testing import FakeClient, ManualClock, settle


def make_pod(*, node: str = "", phase: str = "Pending") -> Object:
    """A pod that a finalizer keeps, as one of a Job."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "ns", "uid": "uid-p", "finalizers": ["test/keep"]},
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": phase},
    }


@pytest.mark.parametrize(
    ("pod", "is_deleted", "phase"),
    [
        pytest.param(make_pod(), True, "Failed", id="deleted-before-it-had-a-node"),
        pytest.param(make_pod(), False, "Pending", id="waits-for-a-node"),
        pytest.param(make_pod(node="laptop", phase="Running"), True, "Running", id="has-a-kubelet"),
        pytest.param(make_pod(phase="Succeeded"), True, "Succeeded", id="has-ended"),
    ],
)
async def test_deleted_pods(pod: Object, is_deleted: bool, phase: str) -> None:
    """A pod that has no node has failed once it is deleted: whoever waits for its end goes on."""
    clock = ManualClock()
    client = FakeClient(pod, clock=clock)
    manager = Manager(client, clock=clock)
    register(manager)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        await manager.wait_for_start()
        if is_deleted:
            await client.delete(PODS, "p", "ns")
        await settle()
        (found,) = client.objects(PODS)
        assert found["status"]["phase"] == phase
        tasks.cancel_scope.cancel()
