"""Pods whose Job is gone: nobody will count them, so the tracking finalizer must not hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.controller.controller import Controller
from trainer.kube.errors import NotFoundError
from trainer.kube.objects import ObjectKey, controller_of, uid_of
from trainer.kube.resource import JOBS, PODS
from trainer_devcluster.controllers.job.controller import release
from trainer_devcluster.controllers.job.pods import is_tracked

if TYPE_CHECKING:
    from trainer.kube.cache.cached_object import CachedObject
    from trainer.kube.cache.store import Lister
    from trainer.kube.client import Client
    from trainer.kube.manager.manager import Manager
    from trainer.kube.objects import Object


class OrphanReconciler:
    """Releases tracked pods without a living Job."""

    def __init__(self, client: Client, jobs: Lister, pods: Lister) -> None:
        self._client = client
        self._jobs = jobs
        self._pods = pods

    async def reconcile(self, key: ObjectKey) -> None:
        """Release the pod if it is tracked and its Job does not exist."""
        pod = self._pods.get(key)
        if pod is not None and is_tracked(pod) and not await self._is_cared_for(key, pod):
            await release(self._client, pod)

    async def _is_cared_for(self, key: ObjectKey, pod: Object) -> bool:
        owner = controller_of(pod)
        if owner is None:
            return False
        if (owner["apiVersion"], owner["kind"]) != (JOBS.api_version, JOBS.kind):
            # The finalizer of a pod that something else controls is that something's business.
            return True
        cached = self._jobs.peek(ObjectKey(key.namespace, owner["name"]))
        if cached is not None and cached.uid == owner["uid"]:
            return True
        # The pod may have come to the cache before its Job: what is absent there is looked up.
        try:
            found = await self._client.get(JOBS, owner["name"], key.namespace)
        except NotFoundError:
            return False
        return uid_of(found) == str(owner["uid"])


def register(manager: Manager) -> None:
    """Have the manager run the controller of orphaned pods."""
    reconciler = OrphanReconciler(manager.client, manager.informer(JOBS).lister, manager.informer(PODS).lister)
    Controller("orphaned-pod", manager, reconciler.reconcile).reconciles(PODS, predicate=_is_tracked)


def _is_tracked(_: CachedObject | None, new: CachedObject | None) -> bool:
    return new is not None and is_tracked(new)
