"""The fake kubelet, with the scheduler, on an API server in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from packages.devcluster.tests.kubelet.fakes import eventually, make_pod, shell
from trainer.kube.manager.manager import Manager
from trainer.kube.resource import NODES, PODS
from trainer_devcluster.kubelet import KubeletOptions
from trainer_devcluster.kubelet.fake import register
from trainer_devcluster.kubelet.fake.life import RUNS_FOR
from trainer_kube_testing import FakeClient


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
