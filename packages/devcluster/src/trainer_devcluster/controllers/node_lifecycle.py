"""The node lifecycle controller, with the taint manager and the part of pod garbage collection that is about nodes.

Kubernetes documentation, "Nodes", "Taints and Tolerations" and "Node Shutdowns". A node is lost when an annotation says
so (`node_outage`), not after `node-monitor-grace-period`.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

import structlog

from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.client import Client, DeleteOptions
from trainer.kube.clock import Clock, timestamp
from trainer.kube.controller.controller import Controller
from trainer.kube.controller.reconcile import Result
from trainer.kube.errors import ConflictError, NotFoundError
from trainer.kube.events.recorder import EventRecorder
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import (
    Object,
    ObjectKey,
    find_condition,
    has_finished,
    is_being_deleted,
    is_condition_true,
    key_of,
    mapping_at,
    metadata_of,
    name_of,
    namespace_of,
    objects_in,
    resource_version_of,
    set_condition,
    uid_of,
)
from trainer.kube.resource import NODES, PODS
from trainer.workloads.pod_life import NODE_NOT_READY
from trainer.workloads.tolerations import (
    NO_EXECUTE,
    NO_SCHEDULE,
    NOT_READY,
    OUT_OF_SERVICE,
    UNREACHABLE,
    UNSCHEDULABLE,
    eviction_time,
    has_taint,
)
from trainer_devcluster.controllers.pod_garbage_collector import mark_failed
from trainer_devcluster.node_outage import stated_readiness

log = structlog.get_logger(__name__)

_BY_NODE: Final = "node"
_READY: Final = {
    "True": ("KubeletReady", "the dev cluster runs pods as processes of this machine"),
    "False": ("KubeletNotReady", "the annotation devcluster.trainer/ready says so"),
    "Unknown": ("NodeStatusUnknown", "Kubelet stopped posting node status."),
}
"""Reason and message of the condition Ready, by its status."""
_TAINTS: Final = {"False": NOT_READY, "Unknown": UNREACHABLE}
_OURS: Final = frozenset({NOT_READY, UNREACHABLE, UNSCHEDULABLE})


class NodeLifecycle:
    """Brings condition, taints and pods of a node into line; what it has to do, it sees from the objects."""

    def __init__(self, manager: Manager) -> None:
        self._client: Client = manager.client
        self._clock: Clock = manager.clock
        self._nodes = manager.informer(NODES).lister
        pods = manager.informer(PODS)
        pods.add_index(_BY_NODE, _node_of)
        self._pods = pods.lister
        self._lifecycle = EventRecorder(manager.events, "node-controller")
        self._taint_manager = EventRecorder(manager.events, "taint-eviction-controller")
        self._tainted: dict[str, datetime] = {}
        controller = Controller("node-lifecycle", manager, self.reconcile).reconciles(NODES)
        controller.watches(PODS, lambda pod: [ObjectKey("", node) for node in _node_of(pod)])

    async def reconcile(self, key: ObjectKey) -> Result | None:
        """Take a node and its pods one step further. Raises `KubeError` for another try."""
        node = self._nodes.get(key)
        if node is None or find_condition(node, "Ready") is None:  # its kubelet has yet to say something
            return None
        node = await self._set_taints(await self._set_ready(node))
        pods = [pod for found in self._pods.keys_by_index(_BY_NODE, key.name) if (pod := self._pods.get(found))]
        is_ready = is_condition_true(node, "Ready")
        for pod in pods:
            try:
                if not is_ready:
                    await self._mark_not_ready(pod)
                if not is_ready and has_taint(node, OUT_OF_SERVICE) and is_being_deleted(pod):
                    await self._delete_by_force(pod)
            except (NotFoundError, ConflictError) as error:
                log.debug("pod has changed, will look again", pod=str(key_of(pod)), error=str(error))
        return await self._evict(node, pods)

    async def _set_ready(self, node: Object) -> Object:
        """Write the condition that the annotation asks for."""
        status, now = stated_readiness(node), timestamp(self._clock.now())
        if (find_condition(node, "Ready") or {}).get("status") == status:
            return node
        reason, message = _READY[status]
        heartbeat = now if status != "Unknown" else (find_condition(node, "Ready") or {}).get("lastHeartbeatTime")
        condition: Object = {"type": "Ready", "status": status, "reason": reason, "message": message}
        condition["lastHeartbeatTime"] = heartbeat
        conditions = set_condition(node["status"]["conditions"], condition, now)
        patch = {"metadata": _same(node), "status": {"conditions": conditions}}
        changed = await self._client.patch(NODES, name_of(node), patch, subresource="status")
        event = "NodeReady" if status == "True" else NODE_NOT_READY
        text = f"Node {name_of(node)} status is now: {event}"
        self._lifecycle.record(node, type="Normal", reason=event, message=text)
        log.info("changed readiness of node", node=name_of(node), ready=status)
        return changed

    async def _set_taints(self, node: Object) -> Object:
        """Write the taints that come from the condition Ready and from a cordon, beside those of others."""
        spec, now = mapping_at(node, "spec"), timestamp(self._clock.now())
        present = objects_in(spec.get("taints"))
        outage = _TAINTS.get((find_condition(node, "Ready") or {}).get("status") or "")
        wanted = [(outage, NO_SCHEDULE), (outage, NO_EXECUTE)] if outage else []
        wanted += [(UNSCHEDULABLE, NO_SCHEDULE)] if spec.get("unschedulable") else []
        had = {(taint.get("key"), taint.get("effect")): taint for taint in present}
        taints = [taint for taint in present if taint.get("key") not in _OURS]
        taints += [had.get(each) or {"key": each[0], "effect": each[1], "timeAdded": now} for each in wanted]
        if sorted(map(str, taints)) == sorted(map(str, present)):
            return node
        patch = {"metadata": _same(node), "spec": {"taints": taints or None}}
        return await self._client.patch(NODES, name_of(node), patch)

    async def _mark_not_ready(self, pod: Object) -> None:
        """Say of a pod that it is not ready, since nobody hears of it."""
        ready = find_condition(pod, "Ready")
        if ready is None or ready.get("status") != "True" or has_finished(pod):
            return
        await self._set_condition(pod, {**ready, "status": "False"})
        self._lifecycle.record(pod, type="Warning", reason=NODE_NOT_READY, message="Node is not ready")

    async def _evict(self, node: Object, pods: Iterable[Object]) -> Result | None:
        """Delete the pods that have tolerated a taint for as long as they do; asks to come back for the next."""
        now = self._clock.now()
        executing = any(
            taint.get("effect") == NO_EXECUTE for taint in objects_in(mapping_at(node, "spec").get("taints"))
        )
        if not executing:
            self._tainted.pop(name_of(node), None)
            return None
        since, pauses = self._tainted.setdefault(name_of(node), now), []
        for pod in pods:
            due = None if has_finished(pod) or is_being_deleted(pod) else eviction_time(pod, node, since)
            if due is not None and due > now:
                pauses.append((due - now).total_seconds())
            elif due is not None:
                try:
                    await self._delete_for_taint(pod)
                except (NotFoundError, ConflictError) as error:
                    log.debug("pod has changed, will look again", pod=str(key_of(pod)), error=str(error))
        return Result(requeue_after=min(pauses)) if pauses else None

    async def _delete_for_taint(self, pod: Object) -> None:
        message = f"Marking for deletion Pod {key_of(pod)}"
        self._taint_manager.record(pod, type="Normal", reason="TaintManagerEviction", message=message)
        reason, text = "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"
        condition = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": text}
        await self._set_condition(pod, condition)
        await self._client.delete(PODS, name_of(pod), namespace_of(pod), DeleteOptions(uid=uid_of(pod)))

    async def _delete_by_force(self, pod: Object) -> None:
        """Delete a pod of a node that is out of service, whose kubelet will never say that it has ended."""
        if metadata_of(pod).get("deletionGracePeriodSeconds") == 0:  # it waits for finalizers alone
            return
        await mark_failed(self._client, pod)
        options = DeleteOptions(grace_period_seconds=0, uid=uid_of(pod))
        await self._client.delete(PODS, name_of(pod), namespace_of(pod), options)

    async def _set_condition(self, pod: Object, condition: Object) -> None:
        now = timestamp(self._clock.now())
        conditions = set_condition(objects_in((pod.get("status") or {}).get("conditions")), condition, now)
        patch = {"metadata": _same(pod), "status": {"conditions": conditions}}
        await self._client.patch(PODS, name_of(pod), patch, namespace_of(pod), subresource="status")


def _same(obj: Object) -> Object:
    """Metadata of a patch that replaces a list, and must not undo what others have changed in it."""
    return {"uid": uid_of(obj), "resourceVersion": resource_version_of(obj)}


def _node_of(pod: CachedObject) -> tuple[str, ...]:
    node = (pod.get("spec") or {}).get("nodeName")
    return (str(node),) if node else ()


def register(manager: Manager) -> None:
    """Have the manager run the node lifecycle controller."""
    NodeLifecycle(manager)
