"""PodGroups: what exists of gangs, and what their status says of it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from trainer.kube.clock import timestamp
from trainer.kube.controller.controller import Controller
from trainer.kube.errors import NotFoundError
from trainer.kube.objects import ObjectKey, name_of, namespace_of, uid_of
from trainer.kube.resource import PODS
from trainer_devcluster.scheduler.candidate import takes_room
from trainer_devcluster.scheduler.gangs import COSCHEDULING, GANG_SCHEDULERS, Gang, gang_of
from trainer_devcluster.scheduler.placement import GangState
from trainer_devcluster.scheduler.pod_group_status import coscheduling_status, volcano_status

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable

    from trainer.kube.cache.cached_object import CachedObject
    from trainer.kube.manager.manager import Manager
    from trainer_devcluster.scheduler.candidate import Candidate
    from trainer_devcluster.scheduler.gangs import GangScheduler

_INDEX = "gang"


class PodGroups:
    """Looks up gangs, and keeps the status of PodGroups; constructing it registers that with the manager.

    Args:
        manager: runs the controllers.
        candidate: looks up what the scheduler knows of a pod.
        assumed: pods that have been bound, as the watch may not show yet.
    """

    def __init__(
        self,
        manager: Manager,
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
            scheduler.name: manager.informer(scheduler.pod_groups, optional=True).lister
            for scheduler in GANG_SCHEDULERS.values()
        }
        for scheduler in GANG_SCHEDULERS.values():
            controller = Controller(f"{scheduler.name}-pod-groups", manager, partial(self.reconcile, scheduler))
            controller.watches(scheduler.pod_groups, lambda obj: [obj.key], optional=True)
            controller.watches(PODS, partial(_groups_of, scheduler))

    def state(self, gang: Gang) -> GangState:
        """What exists of a gang."""
        group = self._groups[gang.scheduler].get(gang.key)
        if group is None:
            return GangState(None)
        members = [pod for key in self._members(gang) if (pod := self._pods.peek(key)) is not None]
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
        build = coscheduling_status if scheduler is COSCHEDULING else volcano_status
        status = build(group, pods, timestamp(self._clock.now()))
        if status == (group.get("status") or {}):
            return
        present = group.get("status") or {}
        change = {name: None for name in present if name not in status} | status
        patch = {"metadata": {"uid": uid_of(group)}, "status": change}
        try:
            await self._client.patch(
                scheduler.pod_groups, name_of(group), patch, namespace_of(group), subresource="status"
            )
        except NotFoundError:
            return

    def _members(self, gang: Gang) -> Iterable[ObjectKey]:
        return self._pods.keys_by_index(_INDEX, str(gang))


def _gang(pod: CachedObject) -> Gang | None:
    return gang_of(pod["spec"].get("schedulerName") or "", pod["metadata"])


def _gang_names(pod: CachedObject) -> Iterable[str]:
    gang = _gang(pod)
    return () if gang is None else (str(gang),)


def _groups_of(scheduler: GangScheduler, pod: CachedObject) -> Iterable[ObjectKey]:
    gang = _gang(pod)
    return [gang.key] if gang is not None and gang.scheduler == scheduler.name else []
