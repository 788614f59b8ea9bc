"""The gangs of PodGroups, and the status that kube-scheduler, scheduler-plugins and Volcano write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence
from functools import partial
from uuid import uuid4

from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.clock import timestamp
from trainer.kube.controller.controller import Controller
from trainer.kube.errors import NotFoundError
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import (
    Object,
    ObjectKey,
    find_condition,
    is_condition_true,
    name_of,
    namespace_of,
    owner_references_of,
    resource_version_of,
    set_condition,
    uid_of,
)
from trainer.kube.resource import PODS
from trainer_devcluster.scheduler import texts
from trainer_devcluster.scheduler.candidate import (
    COSCHEDULING,
    KUBERNETES,
    VOLCANO,
    Candidate,
    Gang,
    GangScheduler,
    gang_of,
    is_waiting,
    takes_room,
)
from trainer_devcluster.scheduler.placement import GangState, least_of

_READY = "tasks in gang are ready to be scheduled"
_ENDED = ("Finished", "Failed")
INITIALLY_SCHEDULED = "PodGroupInitiallyScheduled"
"""Condition of a PodGroup of Kubernetes that stays True once it is."""


def coscheduling_status(group: Object, pods: Sequence[Object], now: str) -> Object:
    """Status of a PodGroup of scheduler-plugins.

    Args:
        group: the PodGroup.
        pods: all that name it.
        now: for `scheduleStartTime`.
    """
    status: Object = dict(group.get("status") or {})
    phase, least = status.get("phase") or "", least_of(group.get("spec") or {})
    if phase in _ENDED:
        return status
    if not phase:
        return status | {"phase": "Pending"}
    if phase == "Pending":
        if len(pods) < least:
            return status
        occupied = {"occupiedBy": owner} if (owner := _owner(pods)) else {}
        return status | {"phase": "Scheduling", "scheduleStartTime": status.get("scheduleStartTime") or now} | occupied
    counts = _phases(pods)
    running, succeeded, failed = (counts[name] for name in ("Running", "Succeeded", "Failed"))
    status |= {"running": running, "succeeded": succeeded, "failed": failed}
    if len(pods) < least:
        return status | {"phase": "Pending"}
    phase = "Running" if succeeded + running >= least else "Scheduling"
    if failed and failed + running + succeeded >= least:
        phase = "Failed"
    if succeeded >= least:
        phase = "Finished"
    return status | {"phase": phase}


def volcano_status(group: Object, pods: Sequence[Object], now: str) -> Object:
    """Status of a PodGroup of Volcano; arguments as for `coscheduling_status`."""
    counts, least = _phases(pods), least_of(group.get("spec") or {})
    allocated = [pod for pod in pods if pod["spec"].get("nodeName") and _phase(pod) != "Failed"]
    status: Object = {
        key: value for key, value in (group.get("status") or {}).items() if key in ("conditions", "phase")
    }
    if counts["Succeeded"] + counts["Failed"] == len(pods) and len(pods) >= least:
        status["phase"] = "Completed"
    elif len(allocated) >= least:
        status["phase"] = "Running"
    elif counts["Running"]:
        status["phase"] = "Unknown"
    else:
        status["phase"] = "Inqueue" if len(pods) >= least else "Pending"
    for field in ("running", "succeeded", "failed"):
        if counts[field.capitalize()]:
            status[field] = counts[field.capitalize()]
    condition = _volcano_condition(pods, enough=len(allocated) >= least)
    if condition is not None:
        _set_condition(status, group, condition, now)
    return status


def kubernetes_status(group: Object, pods: Sequence[Object], now: str) -> Object:
    """Status of a PodGroup of Kubernetes, read from what its pods say; arguments as for `coscheduling_status`."""
    status: Object = dict(group.get("status") or {})
    if is_condition_true(group, INITIALLY_SCHEDULED):
        return status
    least = max(1, least_of(group["spec"]))
    scheduled = sum(bool(pod["spec"].get("nodeName")) for pod in pods)
    waiting = [find_condition(pod, "PodScheduled") or {} for pod in pods if is_waiting(pod)]
    held = [str(verdict.get("message")) for verdict in waiting if verdict.get("reason") == "Unschedulable"]
    condition = {"type": INITIALLY_SCHEDULED, "status": "True", "reason": "Scheduled", "message": ""}
    if scheduled < least:
        if not held:
            return status
        fitting = sum(message.startswith(texts.INFEASIBLE) for message in held)
        of_all = [message for message in held if message.startswith((texts.MIXED, texts.PREEMPTING))]
        message = of_all[0] if of_all else texts.min_count(least, scheduled + fitting)
        reason = "SchedulerError" if message.startswith(texts.MIXED) else "Unschedulable"
        condition |= {"status": "False", "reason": reason, "message": message}
    return status | {"conditions": set_condition(status.get("conditions") or [], condition, now)}


def _volcano_condition(pods: Sequence[Object], *, enough: bool) -> Object | None:
    if enough:
        return {"type": "Scheduled", "reason": _READY}
    for pod in pods:
        verdict = find_condition(pod, "PodScheduled") if is_waiting(pod) else None
        if verdict is not None and verdict.get("reason") == "Unschedulable":
            return {"type": "Unschedulable", "reason": "NotEnoughResources", "message": verdict.get("message") or ""}
    return None


def _set_condition(status: Object, group: Object, condition: Object, now: str) -> None:
    present = find_condition(group, condition["type"]) or {}
    if all(present.get(name) == value for name, value in condition.items()):
        return
    others = [entry for entry in status.get("conditions") or [] if entry["type"] != condition["type"]]
    entry = condition | {"status": "True", "lastTransitionTime": now, "transitionID": str(uuid4())}
    status["conditions"] = [*others, entry]


def _phase(pod: Object) -> str:
    return str((pod.get("status") or {}).get("phase") or "")


def _phases(pods: Sequence[Object]) -> Counter[str]:
    return Counter(map(_phase, pods))


def _owner(pods: Sequence[Object]) -> str:
    """`occupiedBy`: namespace and name of what owns the first pod."""
    for owner in owner_references_of(pods[0]) if pods else []:
        return f"{pods[0]['metadata'].get('namespace')}/{owner['name']}"
    return ""


_STATUS = {
    KUBERNETES.name: kubernetes_status,
    COSCHEDULING.name: coscheduling_status,
    VOLCANO.name: volcano_status,
}
_INDEX = "gang"


class PodGroupController:
    """Looks up gangs, and keeps the status of PodGroups; constructing it registers that with the manager.

    Args:
        manager: runs the controllers.
        schedulers: whose PodGroups matter.
        candidate: looks up what the scheduler knows of a pod.
        assumed: pods that have been bound, as the watch may not show yet.
    """

    def __init__(
        self,
        manager: Manager,
        schedulers: Sequence[GangScheduler],
        candidate: Callable[[ObjectKey], Candidate | None],
        assumed: Container[ObjectKey] = frozenset(),
    ) -> None:
        self._client = manager.client
        self._clock = manager.clock
        self._candidate = candidate
        self._assumed = assumed
        pods = manager.informer(PODS)
        pods.add_index(_INDEX, _gang_names)
        self._pods = pods.lister
        self._groups = {
            scheduler.name: manager.informer(scheduler.pod_groups, optional=True).lister for scheduler in schedulers
        }
        for scheduler in schedulers:
            controller = Controller(f"{scheduler.name}-pod-groups", manager, partial(self.reconcile, scheduler))
            controller.watches(scheduler.pod_groups, lambda obj: [obj.key], optional=True)
            controller.watches(PODS, partial(_groups_of, scheduler))

    def state(self, gang: Gang) -> GangState:
        """What exists of a gang."""
        group = self._groups[gang.scheduler].get(gang.key)
        if group is None:
            return GangState(None)
        keys = self._pods.keys_by_index(_INDEX, str(gang))
        members = [pod for key in keys if (pod := self._pods.peek(key)) is not None]
        placed = [pod.key for pod in members if takes_room(pod) or pod.key in self._assumed]
        assigned = [known for key in placed if (known := self._candidate(key))]
        succeeded = sum((pod.get("status") or {}).get("phase") == "Succeeded" for pod in members)
        return GangState(group.get("spec") or {}, len(members), assigned, succeeded)

    async def reconcile(self, scheduler: GangScheduler, key: ObjectKey) -> None:
        """Bring the status of a PodGroup up to date. Raises `KubeError` for another try."""
        group = self._groups[scheduler.name].get(key)
        if group is None:
            return
        pods = self._pods.by_index(_INDEX, str(Gang(scheduler.name, *key)))
        status = _STATUS[scheduler.name](group, pods, timestamp(self._clock.now()))
        await self._write(scheduler, group, status)

    async def disrupt(self, gang: Gang) -> None:
        """Say of a PodGroup of Kubernetes that it is preempted. Raises `KubeError`."""
        group = self._groups[gang.scheduler].get(gang.key)
        if group is not None:
            status = group.get("status") or {}
            condition = texts.preempted("preempted to accommodate a higher priority pod group")
            conditions = set_condition(status.get("conditions") or [], condition, timestamp(self._clock.now()))
            await self._write(KUBERNETES, group, {**status, "conditions": conditions})

    async def _write(self, scheduler: GangScheduler, group: Object, status: Object) -> None:
        present = group.get("status") or {}
        if status == present:
            return
        change = {name: None for name in present if name not in status} | status
        version = {"uid": uid_of(group), "resourceVersion": resource_version_of(group)}
        patch = {"metadata": version, "status": change}
        try:
            await self._client.patch(
                scheduler.pod_groups, name_of(group), patch, namespace_of(group), subresource="status"
            )
        except NotFoundError:
            return


def _gang_names(pod: CachedObject) -> Iterable[str]:
    gang = gang_of(pod)
    return () if gang is None else (str(gang),)


def _groups_of(scheduler: GangScheduler, pod: CachedObject) -> Iterable[ObjectKey]:
    gang = gang_of(pod)
    return [gang.key] if gang is not None and gang.scheduler == scheduler.name else []
