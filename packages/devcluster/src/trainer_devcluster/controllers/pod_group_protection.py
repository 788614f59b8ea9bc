"""PodGroup protection: a PodGroup that is deleted stays until none of its pods is left (Kubernetes, KEP-5832)."""

from __future__ import annotations

from collections.abc import Iterable

from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.controller.controller import Controller
from trainer.kube.errors import ConflictError, NotFoundError
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import ObjectKey, has_finished, is_being_deleted, metadata_of, resource_version_of
from trainer.kube.resource import PODS
from trainer_devcluster.workload_api import POD_GROUPS, PROTECTION

_INDEX = "pod-group"


class PodGroupProtection:
    """Takes the finalizer off PodGroups."""

    def __init__(self, manager: Manager) -> None:
        self._client = manager.client
        pods = manager.informer(PODS)
        pods.add_index(_INDEX, lambda pod: map(str, _group_of(pod)))
        self._pods = pods.lister
        self._groups = manager.informer(POD_GROUPS, optional=True).lister
        controller = Controller("pod-group-protection", manager, self.reconcile)
        controller.watches(POD_GROUPS, lambda obj: [obj.key], optional=True).watches(PODS, _group_of)

    async def reconcile(self, key: ObjectKey) -> None:
        """Let one PodGroup go. Raises `KubeError` for another try."""
        group = self._groups.get(key)
        if group is None or not is_being_deleted(group) or PROTECTION not in metadata_of(group).get("finalizers", []):
            return
        if not all(has_finished(pod) for pod in self._pods.by_index(_INDEX, str(key))):
            return
        kept = [finalizer for finalizer in metadata_of(group)["finalizers"] if finalizer != PROTECTION]
        patch = {"metadata": {"resourceVersion": resource_version_of(group), "finalizers": kept}}
        try:
            await self._client.patch(POD_GROUPS, key.name, patch, key.namespace)
        except (NotFoundError, ConflictError):
            return


def _group_of(pod: CachedObject) -> Iterable[ObjectKey]:
    name = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
    return [ObjectKey(pod.key.namespace, name)] if name else []


def register(manager: Manager) -> None:
    """Have the manager run it."""
    PodGroupProtection(manager)
