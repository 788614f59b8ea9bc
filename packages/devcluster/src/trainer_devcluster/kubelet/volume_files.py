"""The files of configMap, secret, downwardAPI and projected volumes, replaced all at once.

A program that reads several files must not see some old and some new. As a kubelet does it, the files are in a hidden
directory with a name of its own, the symbolic link `..data` points there, and what the program opens are links by way
of `..data`; one rename makes the change (Kubernetes documentation, "Mounted ConfigMaps are updated automatically").
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from trainer.kube.objects import Object, namespace_of
from trainer.kube.resource import CONFIG_MAPS, SECRETS, Resource
from trainer_devcluster.kubelet.environment import ConfigReader, PodFacts, entries_of, field_value, resource_value
from trainer_devcluster.kubelet.errors import UnsupportedVolumeError, VolumeError
from trainer_devcluster.kubelet.pod_spec import container_named
from trainer_devcluster.kubelet.service_account_tokens import PodTokens

_CURRENT = "..data"
_NEXT = "..data_tmp"
_DIRECTORY_MODE = 0o755


@dataclass(frozen=True, slots=True)
class VolumeFile:
    """A file of a volume."""

    path: str
    """Relative to the volume."""
    content: bytes
    mode: int


def write_files(volume: Path, files: Sequence[VolumeFile]) -> bool:
    """Make a directory hold these files and no others; whether that has changed anything. Blocks.

    Raises:
        VolumeError: a path leads out of the volume.
        OSError: the machine refuses.
    """
    for file in files:
        if ".." in Path(file.path).parts or Path(file.path).is_absolute():
            raise VolumeError(f"path {file.path!r} must be relative and must not contain '..'")
    wanted = {os.path.normpath(file.path): file for file in files}
    former = (volume / _CURRENT).resolve() if (volume / _CURRENT).is_symlink() else None
    if former is not None and _holds(former, wanted):
        return False
    payload = Path(tempfile.mkdtemp(prefix="..", dir=volume))
    payload.chmod(_DIRECTORY_MODE)
    for path, file in wanted.items():
        place = payload / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(file.content)
        place.chmod(file.mode)
    (volume / _NEXT).unlink(missing_ok=True)
    (volume / _NEXT).symlink_to(payload.name)
    (volume / _NEXT).replace(volume / _CURRENT)
    _link(volume, {path.split("/", 1)[0] for path in wanted})
    if former is not None:
        shutil.rmtree(former, ignore_errors=True)
    return True


def _holds(payload: Path, wanted: dict[str, VolumeFile]) -> bool:
    present = {str(path.relative_to(payload)) for path in payload.rglob("*") if path.is_file()}
    return present == wanted.keys() and all(_is_same(payload / path, file) for path, file in wanted.items())


def _is_same(path: Path, file: VolumeFile) -> bool:
    return stat.S_IMODE(path.stat().st_mode) == file.mode and path.read_bytes() == file.content


def _link(volume: Path, names: set[str]) -> None:
    """See to it that the volume shows these entries of the current payload."""
    for name in names:
        if not (volume / name).is_symlink():
            (volume / name).symlink_to(f"{_CURRENT}/{name}")
    for entry in volume.iterdir():
        if entry.is_symlink() and entry.name not in names and not entry.name.startswith(".."):
            entry.unlink()


FILE_VOLUMES = ("configMap", "secret", "downwardAPI", "projected")
"""Kinds of volumes whose files the kubelet writes, and keeps up to date."""
_DEFAULT_MODE = 0o644
_TOKEN_SECONDS = 3600
_MISSING_KEY = {
    CONFIG_MAPS: "configmap references non-existent config key",
    SECRETS: "references non-existent secret key",
}


@dataclass(frozen=True, slots=True)
class VolumeContent:
    """Reads what the file volumes of a pod are made from, as it is now."""

    pod: Object
    facts: PodFacts
    reader: ConfigReader
    tokens: PodTokens

    async def files(self, kind: str, source: Mapping[str, Any]) -> list[VolumeFile]:
        """The files of a volume of one of `FILE_VOLUMES`.

        Raises:
            VolumeError: something that is not optional is missing (yet), or is not supported.
            ValueError: a field of the downward API is wrong.
        """
        mode = cast("int", source.get("defaultMode", _DEFAULT_MODE))
        if kind != "projected":
            return await self._project(kind, source, mode)
        files: dict[str, VolumeFile] = {}
        for projection in source.get("sources") or []:
            part = next(iter(projection), "")
            for file in await self._project(part, projection.get(part) or {}, mode):
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
            case "serviceAccountToken":
                seconds = source.get("expirationSeconds") or _TOKEN_SECONDS
                token = await self.tokens.get(source.get("audience") or "", seconds)
                return [VolumeFile(source["path"], token.encode(), mode)]
        raise UnsupportedVolumeError(
            f"the dev cluster does not support projected {kind} sources: use configMap, secret, downwardAPI or "
            "serviceAccountToken"
        )

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
                raise VolumeError(f"{_MISSING_KEY[resource]}: {item['key']}")
        return files

    def _downward(self, item: Mapping[str, Any], mode: int) -> VolumeFile:
        if reference := item.get("fieldRef"):
            value = field_value(self.pod, reference["fieldPath"], self.facts)
        else:
            reference = item["resourceFieldRef"]
            container = container_named(self.pod, reference.get("containerName") or "")
            value = resource_value(container, reference, self.facts)
        return VolumeFile(item["path"], value.encode(), item.get("mode", mode))
