"""How fast an autoscaler goes where its metrics point, on an API server in memory."""

from __future__ import annotations

import anyio
import pytest

from packages.devcluster.tests.controllers.horizontal_pod_autoscaler.test_controller import autoscaler
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.resource import HORIZONTAL_POD_AUTOSCALERS
from trainer_devcluster.controllers.horizontal_pod_autoscaler.controller import (
    HorizontalPodAutoscalerReconciler,
    ScaleTargets,
)
from trainer_devcluster.controllers.horizontal_pod_autoscaler.metrics import PREFIX
from trainer_kube_testing import FakeClient, ManualClock


class Target(ScaleTargets):
    """A target of so many replicas."""

    def __init__(self, replicas: int) -> None:
        self.replicas = replicas

    async def get(self, reference: Object, namespace: str) -> Object:
        return {"spec": {"replicas": self.replicas}, "status": {"selector": "app=w"}}

    async def set(self, reference: Object, namespace: str, replicas: int) -> None:
        self.replicas = replicas


@pytest.mark.parametrize(
    ("replicas", "steps"),
    [
        pytest.param(4, [(0, "5", 4), (299, "5", 4), (302, "5", 2)], id="shrinks-after-five-minutes"),
        pytest.param(4, [(0, "100", 8), (15, "100", 16), (30, "100", 20)], id="doubles-up-to-the-most"),
        pytest.param(4, [(0, "10", 4), (200, "10", 4), (320, "1", 4), (640, "1", 3)], id="down-to-the-least"),
    ],
)
async def test_pace(replicas: int, steps: list[tuple[int, str, int]]) -> None:
    """It grows at once, and shrinks to what nothing asked to exceed for five minutes."""
    clock, key = ManualClock(), ObjectKey("ns", "hpa")
    hpa = autoscaler("10", maxReplicas=20, minReplicas=2 if steps[0][1] == "5" else 3)
    hpa["metadata"] |= {"namespace": "ns", "uid": "uid-hpa"}
    types = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"w-{index}", "namespace": "ns", "uid": f"uid-{index}", "labels": {"app": "w"}},
            "spec": {"containers": [{"name": "c"}]},
            "status": {"phase": "Running"},
        }
        for index in range(replicas)
    ]
    client = FakeClient(types | hpa, *pods, clock=clock)
    manager = Manager(client, clock=clock)
    target = Target(replicas)
    reconciler = HorizontalPodAutoscalerReconciler(manager, target)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        await manager.wait_for_start()
        begun = clock.monotonic()
        for at, value, expected in steps:
            patch = {"metadata": {"annotations": {f"{PREFIX}queue": value}}}
            await client.patch(HORIZONTAL_POD_AUTOSCALERS, "hpa", patch, "ns")
            await anyio.wait_all_tasks_blocked()
            await clock.advance(begun + at - clock.monotonic())
            await reconciler.reconcile(key)
            assert target.replicas == expected
        tasks.cancel_scope.cancel()
