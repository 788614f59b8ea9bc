"""PodGroups that are deleted, on an API server in memory."""

from __future__ import annotations

import anyio

from trainer.kube.manager.manager import Manager
from trainer.kube.objects import Object
from trainer.kube.resource import PODS
from trainer_devcluster.controllers.pod_group_protection import register
from trainer_devcluster.workload_api import POD_GROUPS, PROTECTION
from trainer_kube_testing import FakeClient, ManualClock, eventually, settle


def group() -> Object:
    """A PodGroup that somebody else protects as well."""
    metadata = {"name": "gang", "namespace": "ns", "uid": "uid-gang", "finalizers": [PROTECTION, "test/keep"]}
    return {"apiVersion": POD_GROUPS.api_version, "kind": "PodGroup", "metadata": metadata, "spec": {}}


def pod(name: str, phase: str, group_name: str = "gang") -> Object:
    """A pod of a group."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}"},
        "spec": {"schedulingGroup": {"podGroupName": group_name}},
        "status": {"phase": phase},
    }


async def test_group_stays_until_its_pods_have_ended() -> None:
    """The finalizer goes once the group is deleted and no pod of it waits or runs."""
    clock = ManualClock()
    pods = pod("done", "Succeeded"), pod("running", "Running"), pod("other", "Running", "another")
    client = FakeClient(group(), *pods, clock=clock, resources=(POD_GROUPS,))
    manager = Manager(client, clock=clock)
    register(manager)

    def finalizers() -> list[str]:
        found = client.find(POD_GROUPS, "gang", "ns")
        return [] if found is None else list(found["metadata"]["finalizers"])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        await manager.wait_for_start()
        await client.delete(POD_GROUPS, "gang", "ns")
        await settle()
        assert finalizers() == [PROTECTION, "test/keep"]
        client.remove(PODS, "running", "ns")
        await eventually(lambda: finalizers() == ["test/keep"], clock=clock)
        tasks.cancel_scope.cancel()
