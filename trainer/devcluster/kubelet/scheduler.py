"""Binds pods to the only node.

Node selectors and extended resources (GPUs) must fit the machine. Requests for CPU and memory are not added up: a job
written for a cluster shall run on a laptop, only slower. The scheduler named in the pod does not matter either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio

from trainer.devcluster.kubelet.pod_spec import all_containers
from trainer.devcluster.kubelet.pod_status import FINISHED
from trainer.kube.clock import timestamp
from trainer.kube.controller.controller import Controller
from trainer.kube.errors import NotFoundError
from trainer.kube.events.recorder import EventRecorder
from trainer.kube.objects import find_condition, is_being_deleted, name_of, namespace_of, uid_of
from trainer.kube.quantity import parse_quantity
from trainer.kube.resource import PODS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer.devcluster.kubelet.node import Machine
    from trainer.kube.manager.manager import Manager
    from trainer.kube.objects import Object, ObjectKey

_GATED = ("SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates")


class Scheduler:
    """Reconciles pods that have no node, once there is one; constructing it registers it with the manager."""

    def __init__(self, manager: Manager) -> None:
        self._client = manager.client
        self._clock = manager.clock
        self._machine: Machine | None = None
        self._has_node = anyio.Event()
        self._recorder = EventRecorder(manager.events, "default-scheduler")
        self._pods = manager.informer(PODS).lister
        Controller("scheduler", manager, self.reconcile).reconciles(PODS, predicate=_is_unscheduled)

    def add_node(self, machine: Machine) -> None:
        """Begin to bind pods to the node that stands for this machine."""
        self._machine = machine
        self._has_node.set()

    async def reconcile(self, key: ObjectKey) -> None:
        """Bind the pod, or say why not. Raises `KubeError` for another try."""
        await self._has_node.wait()
        assert self._machine is not None
        pod = self._pods.get(key)
        if pod is None or not _is_unscheduled(None, pod):
            return
        if pod["spec"].get("schedulingGates"):
            await self._hold(pod, *_GATED)
            return
        problem = misfit(pod, self._machine)
        if problem:
            message = f"0/1 nodes are available: 1 {problem}."
            if await self._hold(pod, "Unschedulable", message):
                self._recorder.record(pod, type="Warning", reason="FailedScheduling", message=message)
            return
        await self._bind(pod, self._machine.name)

    async def _bind(self, pod: Object, node_name: str) -> None:
        node = {"apiVersion": "v1", "kind": "Node", "name": node_name}
        metadata = {"name": name_of(pod), "namespace": namespace_of(pod), "uid": uid_of(pod)}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": node}
        try:
            await self._client.create(PODS, binding, subresource="binding")
        except NotFoundError:
            return
        message = f"Successfully assigned {namespace_of(pod)}/{name_of(pod)} to {node_name}"
        self._recorder.record(pod, type="Normal", reason="Scheduled", message=message)

    async def _hold(self, pod: Object, reason: str, message: str) -> bool:
        """Set the condition PodScheduled to False; whether that is news."""
        present = find_condition(pod, "PodScheduled")
        if present and present.get("reason") == reason and present.get("message") == message:
            return False
        now = timestamp(self._clock.now())
        condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
        others = [c for c in (pod.get("status") or {}).get("conditions") or [] if c["type"] != "PodScheduled"]
        conditions = [*others, condition | {"lastProbeTime": None, "lastTransitionTime": now}]
        patch = {"metadata": {"uid": uid_of(pod)}, "status": {"conditions": conditions}}
        try:
            await self._client.patch(PODS, name_of(pod), patch, namespace_of(pod), subresource="status")
        except NotFoundError:
            return False
        return True


def misfit(pod: Object, machine: Machine) -> str:
    """Why the pod cannot run on this machine; "" if it can."""
    spec = pod["spec"]
    if any(machine.labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return "node(s) didn't match Pod's node affinity/selector"
    for container in all_containers(pod):
        for resource, amount in ((container.get("resources") or {}).get("limits") or {}).items():
            # Only extended resources have a domain in their name.
            if "/" in resource and parse_quantity(amount) > parse_quantity(machine.capacity.get(resource, "0")):
                return f"Insufficient {resource}"
    return ""


def _is_unscheduled(_old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> bool:
    if new is None or new["spec"].get("nodeName") or is_being_deleted(new):
        return False
    return (new.get("status") or {}).get("phase") not in FINISHED
