"""Generic ephemeral volumes: claims that are made for one pod and go with it (Kubernetes, "Ephemeral Volumes")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainer.kube.controller.controller import Controller
from trainer.kube.errors import AlreadyExistsError, KubeError
from trainer.kube.events.recorder import EventRecorder
from trainer.kube.objects import ObjectKey, is_being_deleted, name_of, namespace_of, uid_of
from trainer.kube.resource import PERSISTENT_VOLUME_CLAIMS, PODS
from trainer_devcluster.kubelet.claims import ephemeral_claim
from trainer_devcluster.kubelet.pod_status import FINISHED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trainer.kube.cache.cached_object import CachedObject
    from trainer.kube.manager.manager import Manager
    from trainer.kube.objects import Object


class EphemeralClaims:
    """Reconciles pods with ephemeral volumes; constructing it registers it with the manager."""

    def __init__(self, manager: Manager) -> None:
        self._client = manager.client
        self._pods = manager.informer(PODS).lister
        self._recorder = EventRecorder(manager.events, "ephemeral_volume")
        controller = Controller("ephemeral-claims", manager, self.reconcile)
        controller.reconciles(PODS, predicate=_has_ephemeral_volumes)

    async def reconcile(self, key: ObjectKey) -> None:
        """Make the claims that the pod lacks. Raises `KubeError`."""
        pod = self._pods.get(key)
        if pod is None or is_being_deleted(pod) or (pod.get("status") or {}).get("phase") in FINISHED:
            return
        for volume in _ephemeral_volumes(pod):
            try:
                await self._client.create(PERSISTENT_VOLUME_CLAIMS, claim_for(pod, volume))
            except AlreadyExistsError:
                continue
            except KubeError as error:
                message = f"ephemeral volume controller: create PVC {ephemeral_claim(pod, volume['name'])}: {error}"
                self._recorder.record(pod, type="Warning", reason="FailedBinding", message=message)
                raise


def claim_for(pod: Object, volume: Mapping[str, Any]) -> Object:
    """The claim of an ephemeral volume: made from its template, owned by the pod."""
    template = volume["ephemeral"]["volumeClaimTemplate"]
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": name_of(pod),
        "uid": uid_of(pod),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    given = template.get("metadata") or {}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            **{field: given[field] for field in ("labels", "annotations") if field in given},
            "name": ephemeral_claim(pod, volume["name"]),
            "namespace": namespace_of(pod),
            "ownerReferences": [owner],
        },
        "spec": template["spec"],
    }


def _ephemeral_volumes(pod: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return (volume for volume in pod["spec"].get("volumes") or [] if volume.get("ephemeral"))


def _has_ephemeral_volumes(_old: CachedObject | None, new: CachedObject | None) -> bool:
    return new is not None and any(True for _ in _ephemeral_volumes(new))
