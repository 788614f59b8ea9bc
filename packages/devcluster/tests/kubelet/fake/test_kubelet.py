"""The fake kubelet, with the scheduler, on an API server in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from packages.devcluster.tests.kubelet.fakes import eventually, make_pod, shell
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import find_condition
from trainer.kube.resource import NODES, PODS
from trainer_devcluster.kubelet import KubeletOptions
from trainer_devcluster.kubelet.fake import register
from trainer_devcluster.kubelet.fake.life import RUNS_FOR
from trainer_devcluster.node_outage import READY_ANNOTATION
from trainer_kube_testing import FakeClient, settle


@asynccontextmanager
async def running(client: FakeClient, data_dir: Path, resources: dict[str, str] | None = None) -> AsyncIterator[None]:
    """A fake kubelet, until the context ends."""
    manager = Manager(client)
    kubelet = register(manager, KubeletOptions(data_dir, node_resources=resources or {}))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        await kubelet.wait_for_start()
        yield
        tasks.cancel_scope.cancel()


async def test_pod(tmp_path: Path) -> None:
    """A pod of its node runs and ends, and one of another node is left alone."""
    client = FakeClient(make_pod("pod", shell("false")), make_pod("other", shell("true"), nodeName="elsewhere"))
    async with running(client, tmp_path):
        await eventually(lambda: (client.find(PODS, "pod", "default") or {})["status"]["phase"] == "Succeeded")
        phases = [request.body["status"]["phase"] for request in client.requests_of("patch") if request.name == "pod"]
        assert phases == ["Running", "Succeeded"]
        assert "status" not in (client.find(PODS, "other", "default") or {})


async def test_addresses(tmp_path: Path) -> None:
    """Every pod has an address of its own."""
    pods = [make_pod(f"pod-{index}", shell("true"), restartPolicy="Always") for index in range(3)]
    client = FakeClient(*pods)
    async with running(client, tmp_path):
        await eventually(lambda: all(pod.get("status", {}).get("phase") == "Running" for pod in client.objects(PODS)))
        assert len({pod["status"]["podIP"] for pod in client.objects(PODS)}) == 3


async def test_deletion(tmp_path: Path) -> None:
    """A pod that is deleted is gone soon."""
    pod = make_pod("pod", shell("true"))
    pod["metadata"]["annotations"] = {RUNS_FOR: "1h"}
    client = FakeClient(pod)
    async with running(client, tmp_path):
        await eventually(lambda: client.objects(PODS)[0].get("status", {}).get("phase") == "Running")
        await client.delete(PODS, "pod", "default")
        await eventually(lambda: not client.objects(PODS))


async def test_node(tmp_path: Path) -> None:
    """The node has room for thousands of pods, and the resources that it is given."""
    client = FakeClient()
    async with running(client, tmp_path, {"nvidia.com/gpu": "8"}):
        allocatable = client.objects(NODES)[0]["status"]["allocatable"]
        assert (allocatable["pods"], allocatable["nvidia.com/gpu"]) == ("100k", "8")


async def test_lost_node(tmp_path: Path) -> None:
    """Nobody hears of a pod while its node is lost; when the node is back it is ready again, or ends as it shall."""
    pods = [make_pod(name, shell("true"), restartPolicy="Always") for name in ("stays", "goes")]
    client = FakeClient(*pods)

    def readiness(name: str) -> str:
        return str((find_condition(client.find(PODS, name, "default") or {}, "Ready") or {}).get("status"))

    async with running(client, tmp_path):
        await eventually(lambda: [readiness(name) for name in ("stays", "goes")] == ["True", "True"])
        await client.patch(NODES, "laptop", {"metadata": {"annotations": {READY_ANNOTATION: "Unknown"}}})
        for name in ("stays", "goes"):
            conditions = (client.find(PODS, name, "default") or {})["status"]["conditions"]
            lost = [each | {"status": "False"} if each["type"] == "Ready" else each for each in conditions]
            await client.patch(PODS, name, {"status": {"conditions": lost}}, "default", subresource="status")
        await client.patch(PODS, "goes", {"metadata": {"finalizers": ["test/keep"]}}, "default")
        await client.delete(PODS, "goes", "default")
        requests = len(client.requests)
        await settle()
        assert len(client.requests) == requests

        await client.patch(NODES, "laptop", {"metadata": {"annotations": {READY_ANNOTATION: None}}})
        await eventually(lambda: readiness("stays") == "True")
        await eventually(lambda: (client.find(PODS, "goes", "default") or {})["status"]["phase"] == "Failed")
