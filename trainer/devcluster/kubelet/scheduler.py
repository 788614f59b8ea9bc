"""Binds pods to the only node.

Node selectors and extended resources (GPUs) must fit the Node object. A GPU that the machine does not have can be made
up by advertising it there (Kubernetes documentation, "Advertise Extended Resources for a Node"). Requests for CPU and
memory are not added up: a job written for a cluster shall run on a laptop, only slower. The scheduler named in the pod
does not matter either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainer.devcluster.kubelet.pod_spec import all_containers
from trainer.devcluster.kubelet.pod_status import FINISHED
from trainer.kube.clock import timestamp
from trainer.kube.controller.controller import Controller
from trainer.kube.errors import NotFoundError
from trainer.kube.events.recorder import EventRecorder
from trainer.kube.objects import (
    ObjectKey,
    find_condition,
    is_being_deleted,
    is_condition_true,
    key_of,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
)
from trainer.kube.quantity import parse_quantity
from trainer.kube.resource import NODES, PODS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from trainer.kube.cache.cached_object import CachedObject
    from trainer.kube.manager.manager import Manager
    from trainer.kube.objects import Object

_GATED = ("SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates")


class Scheduler:
    """Reconciles pods that have no node, once the node is ready; constructing it registers it with the manager."""

    def __init__(self, manager: Manager, node_name: str) -> None:
        self._client = manager.client
        self._clock = manager.clock
        self._node = ObjectKey("", node_name)
        self._recorder = EventRecorder(manager.events, "default-scheduler")
        self._pods = manager.informer(PODS).lister
        self._nodes = manager.informer(NODES).lister
        controller = Controller("scheduler", manager, self.reconcile).reconciles(PODS, predicate=_is_unscheduled)
        controller.watches(NODES, self._waiting_pods)

    async def reconcile(self, key: ObjectKey) -> None:
        """Bind the pod, or say why not. Raises `KubeError` for another try."""
        pod, node = self._pods.get(key), self._nodes.get(self._node)
        if pod is None or not _is_unscheduled(None, pod) or node is None or not is_condition_true(node, "Ready"):
            return
        if pod["spec"].get("schedulingGates"):
            await self._hold(pod, *_GATED)
            return
        problem = misfit(pod, node)
        if problem:
            message = f"0/1 nodes are available: 1 {problem}."
            if await self._hold(pod, "Unschedulable", message):
                self._recorder.record(pod, type="Warning", reason="FailedScheduling", message=message)
            return
        await self._bind(pod, name_of(node))

    def _waiting_pods(self, _node: CachedObject) -> Iterable[ObjectKey]:
        """What a change of the node may be good for."""
        return [key_of(pod) for pod in self._pods.list() if _is_unscheduled(None, pod)]

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


def misfit(pod: Object, node: Object) -> str:
    """Why the pod cannot run on the node; "" if it can."""
    labels = labels_of(node)
    if any(labels.get(key) != value for key, value in (pod["spec"].get("nodeSelector") or {}).items()):
        return "node(s) didn't match Pod's node affinity/selector"
    status = node.get("status") or {}
    amounts = (status.get("capacity") or {}) | (status.get("allocatable") or {})
    for container in all_containers(pod):
        for resource, amount in ((container.get("resources") or {}).get("limits") or {}).items():
            # Only extended resources have a domain in their name.
            if "/" in resource and parse_quantity(amount) > parse_quantity(amounts.get(resource, "0")):
                return f"Insufficient {resource}"
    return ""


def _is_unscheduled(_old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> bool:
    if new is None or new["spec"].get("nodeName") or is_being_deleted(new):
        return False
    return (new.get("status") or {}).get("phase") not in FINISHED
