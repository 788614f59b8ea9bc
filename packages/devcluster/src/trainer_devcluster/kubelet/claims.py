"""Persistent volume claims: directories that outlive pods and go with their claim.

A claim is bound at once, and stays until no pod on the node uses it any more (Kubernetes documentation, "Storage Object
in Use Protection"). There are no PersistentVolumes, so `spec.volumeName` names none, and no limits: the capacity is
what was asked for.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import anyio.to_thread
import structlog

from trainer.kube.controller.controller import Controller
from trainer.kube.errors import AlreadyExistsError, KubeError, NotFoundError
from trainer.kube.events.recorder import EventRecorder
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import (
    Object,
    ObjectKey,
    has_finished,
    is_being_deleted,
    key_of,
    metadata_of,
    name_of,
    namespace_of,
    uid_of,
)
from trainer.kube.resource import PERSISTENT_VOLUME_CLAIMS, PODS

log = structlog.get_logger(__name__)

FINALIZER = "kubernetes.io/pvc-protection"
"""Keeps a claim while pods use it, and until its files are removed."""


def claim_directory(data_dir: Path, namespace: str, name: str) -> Path:
    """Where the files of a claim are; they survive a restart of the dev cluster."""
    return data_dir / "claims" / namespace / name


def make_claim_directory(data_dir: Path, namespace: str, name: str) -> Path:
    """Make the directory of a claim, unless it exists, where other users of the machine cannot reach it; blocks."""
    path = claim_directory(data_dir, namespace, name)
    path.mkdir(parents=True, exist_ok=True)
    path.parents[1].chmod(0o700)
    return path


def ephemeral_claim(pod: Mapping[str, Any], volume: str) -> str:
    """Name of the claim behind an ephemeral volume of a pod."""
    return f"{name_of(pod)}-{volume}"


class Claims:
    """Reconciles PersistentVolumeClaims; constructing it registers it with the manager."""

    def __init__(self, manager: Manager, data_dir: Path) -> None:
        self._client = manager.client
        self._data_dir = data_dir
        self._claims = manager.informer(PERSISTENT_VOLUME_CLAIMS).lister
        self._pods = manager.informer(PODS).lister
        controller = Controller("claims", manager, self.reconcile).reconciles(PERSISTENT_VOLUME_CLAIMS)
        controller.watches(PODS, _claims_of, predicate=lambda _, new: new is None or has_finished(new))

    async def reconcile(self, key: ObjectKey) -> None:
        """Bind the claim; when it is being deleted and no longer used, remove its files. Raises `KubeError`."""
        claim = self._claims.get(key)
        if claim is None:
            return
        try:
            await (self._release(claim) if is_being_deleted(claim) else self._bind(claim))
        except NotFoundError:
            return

    async def _bind(self, claim: Object) -> None:
        await anyio.to_thread.run_sync(make_claim_directory, self._data_dir, namespace_of(claim), name_of(claim))
        spec = claim["spec"]
        finalizers = _finalizers(claim)
        if FINALIZER not in finalizers or not spec.get("volumeName"):
            # kubectl shows capacity and access modes only of claims that have a volume.
            volume = {"volumeName": spec.get("volumeName") or f"pvc-{uid_of(claim)}"}
            await self._update(claim, [*(name for name in finalizers if name != FINALIZER), FINALIZER], spec=volume)
        capacity = {"storage": spec["resources"]["requests"]["storage"]}
        bound = {"phase": "Bound", "accessModes": spec["accessModes"], "capacity": capacity}
        status = claim.get("status") or {}
        if any(status.get(name) != value for name, value in bound.items()):
            body = {"metadata": {"uid": uid_of(claim)}, "status": bound}
            await self._patch(claim, body, subresource="status")

    async def _release(self, claim: Object) -> None:
        finalizers = _finalizers(claim)
        if FINALIZER not in finalizers or self._is_used(key_of(claim)):
            return
        directory = claim_directory(self._data_dir, namespace_of(claim), name_of(claim))
        await anyio.to_thread.run_sync(lambda: shutil.rmtree(directory, ignore_errors=True))
        await self._update(claim, [name for name in finalizers if name != FINALIZER])
        log.info("removed files of claim", claim=str(key_of(claim)))

    def _is_used(self, key: ObjectKey) -> bool:
        running = (
            pod for pod in self._pods.list(key.namespace) if pod["spec"].get("nodeName") and not has_finished(pod)
        )
        return any(key in _claims_of(pod) for pod in running)

    async def _update(self, claim: Object, finalizers: list[str], **changes: Object) -> None:
        version = metadata_of(claim).get("resourceVersion")
        metadata = {"uid": uid_of(claim), "resourceVersion": version, "finalizers": finalizers}
        await self._patch(claim, {"metadata": metadata, **changes})

    async def _patch(self, claim: Object, body: Object, *, subresource: str | None = None) -> None:
        await self._client.patch(
            PERSISTENT_VOLUME_CLAIMS, name_of(claim), body, namespace_of(claim), subresource=subresource
        )


def _finalizers(claim: Mapping[str, Any]) -> list[str]:
    return metadata_of(claim).get("finalizers") or []


def _claims_of(pod: Mapping[str, Any]) -> list[ObjectKey]:
    """The claims that a pod mounts."""
    volumes = pod["spec"].get("volumes") or []
    names = [volume["persistentVolumeClaim"]["claimName"] for volume in volumes if volume.get("persistentVolumeClaim")]
    names += [ephemeral_claim(pod, volume["name"]) for volume in volumes if volume.get("ephemeral")]
    return [ObjectKey(namespace_of(pod), name) for name in names]


class EphemeralClaims:
    """Reconciles pods with ephemeral volumes; constructing it registers it with the manager."""

    def __init__(self, manager: Manager) -> None:
        self._client = manager.client
        self._pods = manager.informer(PODS).lister
        self._recorder = EventRecorder(manager.events, "ephemeral_volume")
        controller = Controller("ephemeral-claims", manager, self.reconcile)
        controller.reconciles(PODS, predicate=lambda _, new: new is not None and any(_ephemeral_volumes(new)))

    async def reconcile(self, key: ObjectKey) -> None:
        """Make the claims that the pod lacks. Raises `KubeError`."""
        pod = self._pods.get(key)
        if pod is None or is_being_deleted(pod) or has_finished(pod):
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
