"""Pod volumes as directories of this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import structlog

from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.clock import move_on_after
from trainer.kube.controller.controller import Controller
from trainer.kube.errors import KubeError
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import (
    Object,
    ObjectKey,
    annotations_of,
    is_being_deleted,
    key_of,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
)
from trainer.kube.resource import CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS, PODS, SECRETS
from trainer_devcluster.kubelet.claims import ephemeral_claim, make_claim_directory
from trainer_devcluster.kubelet.environment import ConfigReader, PodFacts
from trainer_devcluster.kubelet.errors import UnsupportedVolumeError, VolumeError
from trainer_devcluster.kubelet.host_paths import host_path
from trainer_devcluster.kubelet.pod_directory import PodDirectory
from trainer_devcluster.kubelet.service_account_tokens import PodTokens
from trainer_devcluster.kubelet.volume_files import FILE_VOLUMES, VolumeContent, write_files

log = structlog.get_logger(__name__)

_DISK, _MEMORY = 0o777, 0o1777
"""Modes of a volume's directory in Kubernetes: on disk, and where it is a tmpfs there. sshd with StrictModes refuses
authorized_keys in either. What is private are the files and, on this machine, the directory around all volumes."""
_IN_MEMORY = ("secret", "downwardAPI", "projected")
_FIELDS = {"configMap": ("name",), "secret": ("secretName", "name")}
"""Where a volume or projected source has the name of the object that it is made from."""


@dataclass(frozen=True, slots=True)
class ReadyVolume:
    """A volume that is ready to be mounted."""

    source: Path
    owned: bool
    """Whether the pod may make directories in it: not in what belongs to the machine."""
    read_only: bool = False


class PodVolumes:
    """The volumes of one pod: makes them, and keeps those up to date whose files come from objects.

    Args:
        pod: the pod as it is at the start.
        directory: where its files are.
        facts: what it may learn about itself.
        reader: looks up objects.
        tokens: of its ServiceAccount.
    """

    def __init__(
        self, pod: Object, directory: PodDirectory, facts: PodFacts, reader: ConfigReader, tokens: PodTokens
    ) -> None:
        self._pod = pod
        self._directory = directory
        self._reader = reader
        self._tokens = tokens
        self._content = VolumeContent(pod, facts, reader, tokens)
        self._is_outdated = anyio.Event()

    async def build(self) -> dict[str, ReadyVolume]:
        """All volumes of the pod, by name.

        Raises:
            VolumeError: one of them cannot be made (yet); the message names it.
        """
        volumes: dict[str, ReadyVolume] = {}
        for volume in self._pod["spec"].get("volumes") or []:
            try:
                volumes[volume["name"]] = await self._make(volume)
            except (VolumeError, ValueError, OSError) as error:
                kind = UnsupportedVolumeError if isinstance(error, UnsupportedVolumeError) else VolumeError
                raise kind(
                    f'MountVolume.SetUp failed for volume "{volume["name"]}" : {without_number(error)}'
                ) from error
        return volumes

    def mark_outdated(self, pod: Object | None = None) -> None:
        """Mark the files as outdated: the pod itself may have changed, or an object that it refers to."""
        if pod is not None:
            self._content = replace(self._content, pod=pod)
        self._is_outdated.set()

    async def keep_current(self) -> None:
        """Bring files up to date when they are marked as outdated and when a token is due, until cancelled."""
        while True:
            async with move_on_after(self._tokens.clock, self._tokens.seconds_to_renewal()):
                await self._is_outdated.wait()
            self._is_outdated = anyio.Event()
            for volume in self._pod["spec"].get("volumes") or []:
                await self._refresh(volume)

    async def _refresh(self, volume: Mapping[str, Any]) -> None:
        kind, source = kind_and_source(volume)
        if kind not in FILE_VOLUMES:
            return
        try:
            files = await self._content.files(kind, source)
            path = self._directory.volume(volume["name"])
            has_changed = await anyio.to_thread.run_sync(write_files, path, files)
        except (KubeError, ValueError, OSError) as error:
            # The pod goes on with what it has; the next change is the next try.
            log.warning("could not bring volume up to date", volume=volume["name"], error=str(error))
            return
        if has_changed:
            log.info("brought volume up to date", volume=volume["name"])

    async def _make(self, volume: Mapping[str, Any]) -> ReadyVolume:
        kind, source = kind_and_source(volume)
        if kind in FILE_VOLUMES:
            return await self._make_files(volume["name"], kind, source)
        match kind:
            case "emptyDir":
                return await self._empty(volume["name"], source.get("medium") or "")
            case "hostPath":
                return ReadyVolume(await anyio.to_thread.run_sync(host_path, source), owned=False)
            case "persistentVolumeClaim":
                return await self._claim(source["claimName"], read_only=bool(source.get("readOnly")))
            case "ephemeral":
                return await self._claim(ephemeral_claim(self._pod, volume["name"]), owner=uid_of(self._pod))
        raise UnsupportedVolumeError(
            f"the dev cluster does not support {kind} volumes: use emptyDir, configMap, secret, downwardAPI, "
            "projected, hostPath, persistentVolumeClaim or ephemeral"
        )

    async def _make_files(self, name: str, kind: str, source: Mapping[str, Any]) -> ReadyVolume:
        files = await self._content.files(kind, source)
        path = self._directory.volume(name)
        await anyio.to_thread.run_sync(_make_directory, path, _MEMORY if kind in _IN_MEMORY else _DISK)
        await anyio.to_thread.run_sync(write_files, path, files)
        return ReadyVolume(path, owned=True, read_only=True)

    async def _empty(self, name: str, medium: str) -> ReadyVolume:
        if medium not in {"", "Memory"}:
            raise UnsupportedVolumeError(f"the dev cluster does not support emptyDir with medium {medium}: use Memory")
        in_memory = medium == "Memory"
        path = self._directory.memory_volume(name) if in_memory else self._directory.volume(name)
        if in_memory:
            await anyio.to_thread.run_sync(self._directory.create_memory)
        await anyio.to_thread.run_sync(_make_directory, path, _MEMORY if in_memory else _DISK)
        return ReadyVolume(path, owned=True)

    async def _claim(self, name: str, *, read_only: bool = False, owner: str = "") -> ReadyVolume:
        namespace = namespace_of(self._pod)
        claim = await self._reader.read(PERSISTENT_VOLUME_CLAIMS, namespace, name)
        if claim is None:
            raise VolumeError(f'persistentvolumeclaim "{name}" not found')
        if is_being_deleted(claim):
            raise VolumeError(f'persistentvolumeclaim "{name}" is being deleted')
        owners = [reference.get("uid") for reference in claim["metadata"].get("ownerReferences") or []]
        if owner and owner not in owners:
            raise VolumeError(f"PVC {namespace}/{name} was not created for pod {namespace}/{name_of(self._pod)}")
        path = await anyio.to_thread.run_sync(make_claim_directory, self._directory.data_dir, namespace, name)
        return ReadyVolume(path, owned=True, read_only=read_only)


def kind_and_source(volume: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """What kind of volume it is, and its description."""
    kind = next((key for key in volume if key != "name"), "emptyDir")
    return kind, volume.get(kind) or {}


def _make_directory(path: Path, mode: int) -> None:
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(mode)


def without_number(error: BaseException) -> str:
    """The error without its number."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


class VolumeRefresh:
    """Follows ConfigMaps, Secrets and the pods' own metadata; constructing it registers it with the manager.

    Args:
        manager: what it runs in.
        refresh: called with the key of a pod whose files have to be compared with what they come from.
    """

    def __init__(self, manager: Manager, refresh: Callable[[ObjectKey], None]) -> None:
        self._refresh = refresh
        self._pods = manager.informer(PODS).lister
        controller = Controller("volumes", manager, self.reconcile).reconciles(PODS, predicate=_has_new_metadata)
        controller.watches(CONFIG_MAPS, lambda obj: self._users("configMap", obj))
        controller.watches(SECRETS, lambda obj: self._users("secret", obj))

    async def reconcile(self, key: ObjectKey) -> None:
        """Have the files of a pod compared with what they come from."""
        self._refresh(key)

    def _users(self, kind: str, obj: CachedObject) -> list[ObjectKey]:
        name = name_of(obj)
        return [key_of(pod) for pod in self._pods.list(namespace_of(obj)) if name in _names(kind, pod)]


def _names(kind: str, pod: Mapping[str, Any]) -> Iterator[str]:
    """Names of the objects of a kind that the pod's volumes are made from."""
    for volume in pod["spec"].get("volumes") or []:
        own, source = kind_and_source(volume)
        sources = source.get("sources") or [] if own == "projected" else [volume]
        for entry in sources:
            for field in _FIELDS[kind]:
                if name := (entry.get(kind) or {}).get(field):
                    yield name


def _has_new_metadata(old: CachedObject | None, new: CachedObject | None) -> bool:
    if old is None or new is None:
        return False
    return labels_of(old) != labels_of(new) or annotations_of(old) != annotations_of(new)
