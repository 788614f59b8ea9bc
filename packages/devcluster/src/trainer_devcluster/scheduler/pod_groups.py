"""The gangs of PodGroups, and the status that kube-scheduler, scheduler-plugins and Volcano write."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from functools import partial

from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.clock import timestamp
from trainer.kube.controller.controller import Controller
from trainer.kube.errors import NotFoundError
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import (
    Object,
    ObjectKey,
    find_condition,
    has_finished,
    is_condition_true,
    name_of,
    namespace_of,
    resource_version_of,
    set_condition,
    uid_of,
)
from trainer.kube.resource import PODS
from trainer_devcluster.scheduler import texts
from trainer_devcluster.scheduler.candidate import (
    KUBERNETES,
    Candidate,
    Gang,
    GangScheduler,
    gang_of,
    is_waiting,
    takes_room,
)
from trainer_devcluster.scheduler.placement import GangState, least_of

INITIALLY_SCHEDULED = "PodGroupInitiallyScheduled"
"""Condition of a PodGroup of Kubernetes that stays True once it is."""


def status_of(scheduler: GangScheduler, group: Object, pods: Sequence[Object], now: str) -> Object:
    """Status of a PodGroup: with a phase for coscheduling and Volcano, with a condition for Kubernetes.

    Args:
        scheduler: whose PodGroup it is.
        group: the PodGroup.
        pods: all that name it.
        now: for the condition.
    """
    if scheduler is KUBERNETES:
        return _kubernetes_status(group, pods, now)
    least = least_of(group.get("spec") or {})
    if _placed(pods) >= least:
        return {"phase": scheduler.ended if all(map(has_finished, pods)) else "Running"}
    return {"phase": "Pending" if len(pods) < least else scheduler.waiting}


def _kubernetes_status(group: Object, pods: Sequence[Object], now: str) -> Object:
    """What is said of a gang is read from its pods."""
    status: Object = dict(group.get("status") or {})
    if is_condition_true(group, INITIALLY_SCHEDULED):
        return status
    least = max(1, least_of(group["spec"]))
    scheduled = _placed(pods)
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


def _placed(pods: Sequence[Object]) -> int:
    return sum(bool(pod["spec"].get("nodeName")) for pod in pods)


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
        status = status_of(scheduler, group, pods, timestamp(self._clock.now()))
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
