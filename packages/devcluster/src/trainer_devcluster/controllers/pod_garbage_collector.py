"""Pod garbage collection, for pods that were deleted before they had a node: no kubelet will say that they have ended.

Kubernetes documentation, "Pod Lifecycle". A Job with a `podReplacementPolicy` of Failed, and the deletion of a
namespace, wait for that. Pods of a node that is out of service are those of `node_lifecycle`.
"""

from __future__ import annotations

from trainer.kube.client import Client
from trainer.kube.controller.controller import Controller
from trainer.kube.errors import NotFoundError
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import (
    Object,
    ObjectKey,
    has_finished,
    is_being_deleted,
    mapping_at,
    name_of,
    namespace_of,
    uid_of,
)
from trainer.kube.resource import PODS


class PodGarbageCollector:
    """Marks deleted pods without a node as failed; Kubernetes looks every 20 seconds, this at once."""

    def __init__(self, manager: Manager) -> None:
        self._client: Client = manager.client
        self._pods = manager.informer(PODS).lister
        Controller("pod-garbage-collector", manager, self.reconcile).reconciles(PODS)

    async def reconcile(self, key: ObjectKey) -> None:
        """Mark one pod. Raises `KubeError` for another try."""
        pod = self._pods.get(key)
        if pod is not None and is_being_deleted(pod) and not mapping_at(pod, "spec").get("nodeName"):
            await mark_failed(self._client, pod)


async def mark_failed(client: Client, pod: Object) -> None:
    """Set the phase of a pod that has not ended, and never will by itself, to Failed; it may be gone.

    Raises:
        KubeError: as `Client.patch`.
    """
    if has_finished(pod):
        return
    patch = {"metadata": {"uid": uid_of(pod)}, "status": {"phase": "Failed"}}
    try:
        await client.patch(PODS, name_of(pod), patch, namespace_of(pod), subresource="status")
    except NotFoundError:
        return


def register(manager: Manager) -> None:
    """Have the manager run it."""
    PodGarbageCollector(manager)
