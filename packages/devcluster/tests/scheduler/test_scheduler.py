"""The scheduler on an API server in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from packages.devcluster.tests.scheduler.objects import make_node, make_pod
from trainer.kube.client import DEFAULT_WATCH, WatchEvent, WatchOptions
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import Object, find_condition, name_of
from trainer.kube.resource import EVENTS, NODES, PODS, Resource
from trainer.kube.selection import EVERYTHING, Selection
from trainer_devcluster.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates
from trainer_devcluster.scheduler import register
from trainer_devcluster.scheduler.candidate import (
    COSCHEDULING,
    VOLCANO,
    GangScheduler,
    definition_of,
)
from trainer_devcluster.workload_api import POD_GROUPS as POD_GROUP_RESOURCE
from trainer_kube_testing import FakeClient, ManualClock, eventually, statuses

GPU = {"nvidia.com/gpu": 1}
POD_GROUPS = (COSCHEDULING.pod_groups, VOLCANO.pod_groups)


@asynccontextmanager
async def scheduling(
    client: FakeClient, clock: ManualClock, gates: FeatureGates = DEFAULT_FEATURE_GATES
) -> AsyncIterator[None]:
    """Run the scheduler within the context."""
    manager = Manager(client, clock=clock)
    register(manager, "laptop", gates)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        await manager.wait_for_start()
        yield
        tasks.cancel_scope.cancel()


def scheduled(client: FakeClient) -> set[str]:
    """Names of the pods that have a node."""
    return {name_of(pod) for pod in client.objects(PODS) if pod["spec"].get("nodeName") == "laptop"}


def verdict(client: FakeClient, name: str) -> tuple[str, str]:
    """Reason and message of the condition that says why a pod waits."""
    condition = find_condition(client.find(PODS, name, "ns") or {}, "PodScheduled") or {}
    return (
        (condition.get("reason", ""), condition.get("message", "")) if condition.get("status") == "False" else ("", "")
    )


def events(client: FakeClient) -> set[tuple[str, str, str]]:
    """Who has said what about which pod."""
    return {
        (event["source"]["component"], event["reason"], event["involvedObject"]["name"])
        for event in client.objects(EVENTS)
    }


@pytest.mark.parametrize(
    ("change", "subresource"),
    [
        pytest.param({"spec": {"unschedulable": None}}, None, id="uncordon"),
        pytest.param({"metadata": {"labels": {"pool": "gpu"}}}, None, id="label"),
    ],
)
async def test_node_changes(change: Object, subresource: str | None) -> None:
    """A pod that waits is looked at again when the node changes."""
    clock = ManualClock()
    node, pod = make_node(), make_pod()
    if "spec" in change:
        node["spec"]["unschedulable"] = True
    elif subresource:
        pod = make_pod("pod", {"example.com/fpga": 1})
    else:
        pod["spec"]["nodeSelector"] = {"pool": "gpu"}
    client = FakeClient(node, pod, clock=clock)
    async with scheduling(client, clock):
        await eventually(lambda: verdict(client, "pod")[0] == "Unschedulable", clock=clock)
        await client.patch(NODES, "laptop", change, subresource=subresource)
        await eventually(lambda: scheduled(client) == {"pod"}, clock=clock)


async def test_scheduler_that_does_not_exist() -> None:
    """A pod of another scheduler is left to it, and an event says that there is none here."""
    clock = ManualClock()
    client = FakeClient(make_node(), make_pod(schedulerName="mine"), clock=clock)
    async with scheduling(client, clock):
        await eventually(lambda: verdict(client, "pod")[0] == "Unschedulable", clock=clock)
        assert verdict(client, "pod")[1].startswith("no scheduler called mine runs here; those that do: default-")
        assert scheduled(client) == set()


async def test_fields_for_several_nodes() -> None:
    """What spreads pods over nodes is no obstacle, and an event says that it has no effect."""
    clock = ManualClock()
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    client = FakeClient(make_node(), make_pod(affinity=affinity), clock=clock)
    async with scheduling(client, clock):
        await eventually(lambda: ("default-scheduler", "Ignored", "pod") in events(client), clock=clock)
        assert scheduled(client) == {"pod"}


async def test_pod_that_cannot_be_read() -> None:
    """A pod whose requests make no sense is left out, and keeps nobody else from being scheduled."""
    clock = ManualClock()
    client = FakeClient(make_node(), make_pod("odd", {"cpu": "many"}), make_pod("pod"), clock=clock)
    async with scheduling(client, clock):
        await eventually(lambda: scheduled(client) == {"pod"}, clock=clock)


async def test_server_fails() -> None:
    """A binding that fails is tried again, and keeps no room meanwhile."""
    clock = ManualClock()
    client = FakeClient(make_node(), make_pod("pod", GPU), clock=clock)
    client.faults.fail(statuses.internal_error(), verb="create", resource=PODS)
    async with scheduling(client, clock):
        await eventually(lambda: scheduled(client) == {"pod"}, clock=clock, within=60)


def member(scheduler: GangScheduler, name: str, **spec: Any) -> Object:
    """A pod of a gang."""
    _, section, field = scheduler.mark
    mark = {section: {field: "gang"}}
    return make_pod(name, GPU, **mark, schedulerName=scheduler.scheduler_names[0], **spec)  # type: ignore[arg-type]


def pod_group(scheduler: GangScheduler, least: int, **spec: Any) -> Object:
    """The PodGroup."""
    metadata = {"name": "gang", "namespace": "ns", "uid": "uid-gang"}
    types = {"apiVersion": scheduler.pod_groups.api_version, "kind": "PodGroup"}
    return types | {"metadata": metadata, "spec": {"minMember": least, **spec}}


def group_status(client: FakeClient, scheduler: GangScheduler) -> Object:
    """What the PodGroup says."""
    status: Object = (client.find(scheduler.pod_groups, "gang", "ns") or {}).get("status") or {}
    return status


@pytest.mark.parametrize("scheduler", [COSCHEDULING, VOLCANO], ids=lambda scheduler: str(scheduler.name))
async def test_gang(scheduler: GangScheduler) -> None:
    """Pods wait for their PodGroup, for enough of them and for room for all; its status follows."""
    clock = ManualClock()
    client = FakeClient(make_node(), make_pod("other", GPU, nodeName="laptop"), clock=clock, resources=POD_GROUPS)
    client.add(member(scheduler, "pod-0"))
    async with scheduling(client, clock):
        await eventually(lambda: verdict(client, "pod-0")[1] == "PodGroup ns/gang not found", clock=clock)
        client.add(pod_group(scheduler, 2))
        await eventually(lambda: group_status(client, scheduler).get("phase") == "Pending", clock=clock)
        client.add(member(scheduler, "pod-1"))
        await eventually(lambda: "Insufficient nvidia.com/gpu" in verdict(client, "pod-1")[1], clock=clock)
        waiting = "Scheduling" if scheduler is COSCHEDULING else "Inqueue"
        await eventually(lambda: group_status(client, scheduler).get("phase") == waiting, clock=clock)
        assert scheduled(client) == {"other"}

        client.remove(PODS, "other", "ns")
        await eventually(lambda: scheduled(client) == {"pod-0", "pod-1"}, clock=clock)
        await eventually(lambda: group_status(client, scheduler)["phase"] == "Running", clock=clock)
        who = {(scheduler.scheduler_names[0], "Scheduled", f"pod-{index}") for index in range(2)}
        await eventually(lambda: who <= events(client), clock=clock)


@pytest.mark.parametrize("is_gang", [pytest.param(True, id="gate on"), pytest.param(False, id="gate off")])
async def test_gang_of_the_workload_api(is_gang: bool) -> None:
    """Its pods are bound together, and its PodGroup says so, where the gate is on; else one by one."""
    clock, gates = ManualClock(), FeatureGates(generic_workload=True, gang_scheduling=is_gang)
    group: Object = {
        "apiVersion": POD_GROUP_RESOURCE.api_version,
        "kind": "PodGroup",
        "metadata": {"name": "gang", "namespace": "ns", "uid": "uid-gang"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    }
    pods = [make_pod(f"pod-{index}", GPU, schedulingGroup={"podGroupName": "gang"}) for index in range(2)]
    other = make_pod("other", GPU, nodeName="laptop")
    client = FakeClient(make_node(), group, *pods, other, clock=clock, resources=(POD_GROUP_RESOURCE,))

    def condition() -> str:
        found = client.find(POD_GROUP_RESOURCE, "gang", "ns") or {}
        return str((find_condition(found, "PodGroupInitiallyScheduled") or {}).get("status"))

    async with scheduling(client, clock, gates):
        await eventually(lambda: "Insufficient" in verdict(client, "pod-1")[1], clock=clock)
        assert scheduled(client) == ({"other"} if is_gang else {"other", "pod-0"})
        await eventually(lambda: condition() == ("False" if is_gang else "None"), clock=clock)
        client.remove(PODS, "other", "ns")
        await eventually(lambda: scheduled(client) == {"pod-0", "pod-1"}, clock=clock)
        await eventually(lambda: condition() == ("True" if is_gang else "None"), clock=clock)


async def test_preemption_of_a_gang() -> None:
    """The pods of a PodGroup that goes as one go together, and say why, as it does; then the other is bound."""
    clock = ManualClock()
    gates = FeatureGates(generic_workload=True, gang_scheduling=True, workload_aware_preemption=True)
    objects: list[Object] = [make_node()]
    for name, priority in (("low", 0), ("high", 10)):
        objects.append(
            {
                "apiVersion": POD_GROUP_RESOURCE.api_version,
                "kind": "PodGroup",
                "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}"},
                "spec": {
                    "schedulingPolicy": {"gang": {"minCount": 2}},
                    "disruptionMode": {"all": {}},
                    "priority": priority,
                },
            }
        )
        node: dict[str, Any] = {"nodeName": "laptop"} if name == "low" else {}
        objects += [
            make_pod(f"{name}-{index}", GPU, schedulingGroup={"podGroupName": name}, priority=priority, **node)
            for index in range(2)
        ]
    for pod in objects[2:4]:
        pod["metadata"]["finalizers"] = ["test/keep"]
    client = FakeClient(*objects, clock=clock, resources=(POD_GROUP_RESOURCE,))
    async with scheduling(client, clock, gates):
        await eventually(lambda: all(is_leaving(client, f"low-{index}") for index in range(2)), clock=clock)
        group = client.find(POD_GROUP_RESOURCE, "low", "ns") or {}
        assert (find_condition(group, "DisruptionTarget") or {})["reason"] == "PreemptionByScheduler"
        waiting = "pod group is waiting for preemption to complete"
        await eventually(lambda: verdict(client, "high-1")[1] == waiting, clock=clock)
        await eventually(lambda: ("default-scheduler", "Preempted", "low-0") in events(client), clock=clock)
        for index in range(2):
            client.remove(PODS, f"low-{index}", "ns")
        await eventually(lambda: scheduled(client) == {"high-0", "high-1"}, clock=clock)


def is_leaving(client: FakeClient, name: str) -> bool:
    """Whether a pod is being deleted since the scheduler has preempted it."""
    pod = client.find(PODS, name, "ns") or {}
    reason = (find_condition(pod, "DisruptionTarget") or {}).get("reason")
    return reason == "PreemptionByScheduler" and "deletionTimestamp" in pod["metadata"]


class LateWatches(FakeClient):
    """Its watches do not show that pods have a node; a binding is answered as the real server does."""

    async def create(
        self, resource: Resource, obj: Object, *, subresource: str | None = None, field_manager: str | None = None
    ) -> Object:
        answer = await super().create(resource, obj, subresource=subresource, field_manager=field_manager)
        return {"kind": "Status", "apiVersion": "v1", "status": "Success"} if subresource == "binding" else answer

    @asynccontextmanager
    async def watch(
        self, resource: Resource, selection: Selection = EVERYTHING, options: WatchOptions = DEFAULT_WATCH
    ) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        async with super().watch(resource, selection, options) as events:
            yield (event async for event in events if b'"nodeName"' not in bytes(event.raw))


@pytest.mark.parametrize("scheduler", [COSCHEDULING, VOLCANO], ids=lambda scheduler: str(scheduler.name))
async def test_late_member_of_a_gang(scheduler: GangScheduler) -> None:
    """A pod that joins a gang which has just been bound does not wait for the watch to show that."""
    clock = ManualClock()
    node = make_node()
    node["status"]["allocatable"]["nvidia.com/gpu"] = "3"
    members = [member(scheduler, f"pod-{index}") for index in range(2)]
    client = LateWatches(node, pod_group(scheduler, 2), *members, clock=clock, resources=POD_GROUPS)
    async with scheduling(client, clock):
        await eventually(lambda: scheduled(client) == {"pod-0", "pod-1"}, clock=clock)
        client.add(member(scheduler, "pod-2"))
        await eventually(lambda: "pod-2" in scheduled(client), clock=clock)


async def test_gang_with_a_gated_member() -> None:
    """Pods that fit wait in silence for one that nobody may schedule yet."""
    clock = ManualClock()
    gated = member(COSCHEDULING, "pod-1", schedulingGates=[{"name": "test/gate"}])
    objects = make_node(), pod_group(COSCHEDULING, 2), member(COSCHEDULING, "pod-0"), gated
    client = FakeClient(*objects, clock=clock, resources=POD_GROUPS)
    async with scheduling(client, clock):
        await eventually(lambda: verdict(client, "pod-1")[0] == "SchedulingGated", clock=clock)
        assert verdict(client, "pod-0") == ("", "")
        await client.patch(PODS, "pod-1", {"spec": {"schedulingGates": None}}, "ns")
        await eventually(lambda: scheduled(client) == {"pod-0", "pod-1"}, clock=clock)


@pytest.mark.parametrize("scheduler", [COSCHEDULING, VOLCANO], ids=lambda scheduler: str(scheduler.name))
def test_definitions(scheduler: GangScheduler) -> None:
    """Each gang scheduler has the definition of its PodGroups."""
    resource, definition = scheduler.pod_groups, definition_of(scheduler)
    assert definition["metadata"]["name"] == resource.qualified_name
    assert definition["spec"]["versions"][0]["name"] == resource.version
