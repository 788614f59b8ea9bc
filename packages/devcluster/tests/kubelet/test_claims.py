"""Persistent volume claims, on an API server in memory."""

from __future__ import annotations

import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from packages.devcluster.tests.kubelet.fakes import LIMIT, eventually, make_pod, shell
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import Object
from trainer.kube.resource import PERSISTENT_VOLUME_CLAIMS, PODS
from trainer_devcluster.kubelet.claims import FINALIZER, Claims, claim_directory, make_claim_directory
from trainer_kube_testing import FakeClient


def claim(name: str = "data") -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-of-{name}"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        "status": {"phase": "Pending"},
    }


def user(name: str = "pod", phase: str = "Running", *, of: str = "data") -> Object:
    """A pod that mounts the claim."""
    volumes = [{"name": "empty"}, {"name": "data", "persistentVolumeClaim": {"claimName": of}}]
    return make_pod(name, shell("true"), volumes=volumes) | {"status": {"phase": phase}}


@asynccontextmanager
async def running(client: FakeClient, data_dir: Path) -> AsyncIterator[None]:
    """The controller of claims, until the context ends."""
    manager = Manager(client)
    Claims(manager, data_dir)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        with anyio.fail_after(LIMIT):
            await manager.wait_for_start()
        yield
        tasks.cancel_scope.cancel()


def is_bound(client: FakeClient) -> bool:
    """Whether the only claim is bound and protected."""
    (stored,) = client.objects(PERSISTENT_VOLUME_CLAIMS)
    return stored["status"]["phase"] == "Bound" and FINALIZER in stored["metadata"]["finalizers"]


async def test_used_claim_stays(tmp_path: Path) -> None:
    """A claim that a pod uses is only gone, with its files, when the pod has ended."""
    client = FakeClient(claim(), user())
    async with running(client, tmp_path):
        await eventually(lambda: is_bound(client))
        file = claim_directory(tmp_path, "default", "data") / "file"
        file.write_text("in use")
        await client.delete(PERSISTENT_VOLUME_CLAIMS, "data", "default")
        await eventually(lambda: "deletionTimestamp" in client.objects(PERSISTENT_VOLUME_CLAIMS)[0]["metadata"])
        await client.patch(PODS, "pod", {"metadata": {"labels": {"still": "running"}}}, "default")
        assert is_bound(client)
        assert file.exists()
        await client.patch(PODS, "pod", {"status": {"phase": "Failed"}}, "default", subresource="status")
        await eventually(lambda: client.objects(PERSISTENT_VOLUME_CLAIMS) == [])
    assert not file.exists()


def test_files_are_private(tmp_path: Path) -> None:
    """Other users of the machine cannot reach the files of claims, whatever the mode of the data directory."""
    tmp_path.chmod(0o755)
    path = make_claim_directory(tmp_path, "default", "data")
    assert path.is_dir()
    assert stat.S_IMODE((tmp_path / "claims").stat().st_mode) == 0o700
