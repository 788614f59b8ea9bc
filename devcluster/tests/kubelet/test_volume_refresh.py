"""Which pods refresh their volumes."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio

from devcluster.tests.kubelet.fakes import LIMIT, eventually, make_pod, shell
from trainer.kube.manager.manager import Manager
from trainer.kube.resource import CONFIG_MAPS, PODS, SECRETS
from trainer.kube.testing import FakeClient
from trainer_devcluster.kubelet.volume_refresh import VolumeRefresh

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from trainer.kube.objects import Object, ObjectKey


def config(kind: str, name: str, namespace: str = "default") -> Object:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}}


def user(name: str, *volumes: Object) -> Object:
    return make_pod(
        name, shell("true"), volumes=[{"name": f"v{index}", **entry} for index, entry in enumerate(volumes)]
    )


PODS_AND_VOLUMES = [
    user("config", {"configMap": {"name": "c"}}),
    user("secret", {"emptyDir": {}}, {"secret": {"secretName": "s"}}),
    user("both", {"projected": {"sources": [{"configMap": {"name": "c"}}, {"secret": {"name": "s"}}]}}),
    user("none", {"emptyDir": {}}),
]


@asynccontextmanager
async def running(client: FakeClient) -> AsyncIterator[list[str]]:
    """Gives the names of the pods that have looked again."""
    found: list[str] = []

    def refresh(key: ObjectKey) -> None:
        found.append(key.name)

    manager = Manager(client)
    VolumeRefresh(manager, refresh)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        with anyio.fail_after(LIMIT):
            await manager.wait_for_start()
        yield found
        tasks.cancel_scope.cancel()


async def test_objects_change() -> None:
    """Those with a volume of the object do, also as a part of a projected one."""
    client = FakeClient(*PODS_AND_VOLUMES, resources=[CONFIG_MAPS, SECRETS])
    async with running(client) as found:
        await client.create(CONFIG_MAPS, config("ConfigMap", "c", "other"))
        await client.create(CONFIG_MAPS, config("ConfigMap", "c"))
        await eventually(lambda: sorted(found) == ["both", "config"])
        found.clear()
        await client.create(SECRETS, config("Secret", "s"))
        await eventually(lambda: sorted(found) == ["both", "secret"])


async def test_metadata_changes() -> None:
    """A pod whose labels or annotations change does; a change of its status does not matter to volumes."""
    client = FakeClient(*PODS_AND_VOLUMES, resources=[CONFIG_MAPS, SECRETS])
    async with running(client) as found:
        await client.patch(PODS, "config", {"status": {"phase": "Running"}}, "default", subresource="status")
        await client.patch(PODS, "none", {"metadata": {"labels": {"a": "b"}}}, "default")
        await eventually(lambda: found == ["none"])
