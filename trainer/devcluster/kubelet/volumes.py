"""Pod volumes as directories of this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import anyio.to_thread

from trainer.devcluster.kubelet.claims import claim_directory
from trainer.devcluster.kubelet.config_reader import entries_of
from trainer.devcluster.kubelet.downward import field_value, resource_value
from trainer.devcluster.kubelet.errors import UnsupportedVolumeError, VolumeError
from trainer.devcluster.kubelet.pod_spec import container_named
from trainer.kube.objects import is_being_deleted, namespace_of
from trainer.kube.resource import CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS, SECRETS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from trainer.devcluster.kubelet.config_reader import ConfigReader
    from trainer.devcluster.kubelet.downward import PodFacts
    from trainer.devcluster.kubelet.pod_directory import PodDirectory
    from trainer.kube.objects import Object
    from trainer.kube.resource import Resource

_DEFAULT_MODE = 0o644
_DISK, _MEMORY = 0o777, 0o1777
"""Modes of a volume's directory in Kubernetes: on disk, and where it is a tmpfs there. sshd with StrictModes refuses
authorized_keys in either. What is private are the files and, on this machine, the directory around all volumes."""
_IN_MEMORY = ("secret", "downwardAPI", "projected")


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume that is ready to be mounted."""

    source: Path
    owned: bool
    """Whether the pod may make directories in it: not in what belongs to the machine."""
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class VolumeFile:
    """A file of a configMap, secret, downwardAPI or projected volume."""

    path: str
    content: bytes
    mode: int


@dataclass(frozen=True, slots=True)
class VolumeBuilder:
    """Makes the volumes of one pod. What they are made from is read once: later changes do not reach the pod."""

    pod: Object
    directory: PodDirectory
    facts: PodFacts
    reader: ConfigReader

    async def build(self) -> dict[str, Volume]:
        """All volumes of the pod, by name.

        Raises:
            VolumeError: one of them cannot be made (yet); the message names it.
        """
        volumes: dict[str, Volume] = {}
        for volume in self.pod["spec"].get("volumes") or []:
            try:
                volumes[volume["name"]] = await self._make(volume)
            except (VolumeError, ValueError, OSError) as error:
                kind = UnsupportedVolumeError if isinstance(error, UnsupportedVolumeError) else VolumeError
                raise kind(f'MountVolume.SetUp failed for volume "{volume["name"]}" : {error}') from error
        return volumes

    async def _make(self, volume: Mapping[str, Any]) -> Volume:
        kind = next((key for key in volume if key != "name"), "emptyDir")
        source: Mapping[str, Any] = volume.get(kind) or {}
        path = self.directory.volume(volume["name"])
        match kind:
            case "emptyDir":
                mode = _MEMORY if source.get("medium") == "Memory" else _DISK
                await anyio.to_thread.run_sync(_make_directory, path, mode)
                return Volume(path, owned=True)
            case "hostPath":
                return await anyio.to_thread.run_sync(_host_path, source)
            case "persistentVolumeClaim":
                return await self._claim(source)
            case "configMap" | "secret" | "downwardAPI":
                files = await self._project(kind, source, _default_mode(source))
            case "projected":
                files = await self._project_all(source)
            case _:
                raise UnsupportedVolumeError(
                    f"the dev cluster does not support {kind} volumes: use emptyDir, configMap, secret, downwardAPI, "
                    "projected, hostPath or persistentVolumeClaim"
                )
        await anyio.to_thread.run_sync(_write_files, path, files, _MEMORY if kind in _IN_MEMORY else _DISK)
        return Volume(path, owned=True, read_only=True)

    async def _claim(self, source: Mapping[str, Any]) -> Volume:
        name, namespace = source["claimName"], namespace_of(self.pod)
        claim = await self.reader.read(PERSISTENT_VOLUME_CLAIMS, namespace, name)
        if claim is None:
            raise VolumeError(f'persistentvolumeclaim "{name}" not found')
        if is_being_deleted(claim):
            raise VolumeError(f'persistentvolumeclaim "{name}" is being deleted')
        path = claim_directory(self.directory.data_dir, namespace, name)
        await anyio.to_thread.run_sync(lambda: path.mkdir(parents=True, exist_ok=True))
        return Volume(path, owned=True, read_only=bool(source.get("readOnly")))

    async def _project_all(self, source: Mapping[str, Any]) -> list[VolumeFile]:
        mode = _default_mode(source)
        files: dict[str, VolumeFile] = {}
        for projection in source.get("sources") or []:
            kind = next(iter(projection), "")
            for file in await self._project(kind, projection.get(kind) or {}, mode):
                files[file.path] = file
        return list(files.values())

    async def _project(self, kind: str, source: Mapping[str, Any], mode: int) -> list[VolumeFile]:
        match kind:
            case "configMap":
                return await self._keys(CONFIG_MAPS, source.get("name") or "", source, mode)
            case "secret":
                return await self._keys(SECRETS, source.get("secretName") or source.get("name") or "", source, mode)
            case "downwardAPI":
                return [self._downward(item, mode) for item in source.get("items") or []]
        raise UnsupportedVolumeError(f"the dev cluster does not support projected {kind} sources")

    async def _keys(self, resource: Resource, name: str, source: Mapping[str, Any], mode: int) -> list[VolumeFile]:
        obj = await self.reader.read(resource, namespace_of(self.pod), name)
        if obj is None:
            if source.get("optional"):
                return []
            raise VolumeError(f'{resource.kind.lower()} "{name}" not found')
        entries = entries_of(resource, obj)
        if not source.get("items"):
            return [VolumeFile(key, value, mode) for key, value in entries.items()]
        files = []
        for item in source["items"]:
            if item["key"] in entries:
                files.append(VolumeFile(item["path"], entries[item["key"]], item.get("mode", mode)))
            elif not source.get("optional"):
                raise VolumeError(f"{resource.kind.lower()} references non-existent config key: {item['key']}")
        return files

    def _downward(self, item: Mapping[str, Any], mode: int) -> VolumeFile:
        if reference := item.get("fieldRef"):
            value = field_value(self.pod, reference["fieldPath"], self.facts)
        else:
            reference = item["resourceFieldRef"]
            container = container_named(self.pod, reference.get("containerName") or "")
            value = resource_value(container, reference, self.facts)
        return VolumeFile(item["path"], value.encode(), item.get("mode", mode))


def _default_mode(source: Mapping[str, Any]) -> int:
    return cast("int", source.get("defaultMode", _DEFAULT_MODE))


def _make_directory(path: Path, mode: int) -> None:
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(mode)


def _write_files(directory: Path, files: Iterable[VolumeFile], mode: int) -> None:
    _make_directory(directory, mode)
    for file in files:
        if ".." in Path(file.path).parts or Path(file.path).is_absolute():
            raise VolumeError(f"path {file.path!r} must be relative and must not contain '..'")
        path = directory / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        # It may be there from before a restart of the kubelet, with a mode that forbids writing.
        path.unlink(missing_ok=True)
        path.write_bytes(file.content)
        path.chmod(file.mode)


def _host_path(source: Mapping[str, Any]) -> Volume:
    path, kind = Path(source["path"]), source.get("type") or ""
    if kind == "DirectoryOrCreate":
        path.mkdir(mode=0o755, parents=True, exist_ok=True)
    elif kind == "FileOrCreate":
        path.touch(mode=0o644)
    checks = {
        "": path.exists, "Directory": path.is_dir, "DirectoryOrCreate": path.is_dir, "File": path.is_file,
        "FileOrCreate": path.is_file, "Socket": path.is_socket, "CharDevice": path.is_char_device,
        "BlockDevice": path.is_block_device,
    }  # fmt: skip
    if kind not in checks:
        raise VolumeError(f"hostPath type {kind!r} is unknown")
    if not checks[kind]():
        raise VolumeError(f"hostPath {path} does not exist on this machine" + (f" as {kind}" if kind else ""))
    return Volume(path, owned=False)
