"""What the files of configMap, secret, downwardAPI and projected volumes hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from trainer.kube.objects import namespace_of
from trainer.kube.resource import CONFIG_MAPS, SECRETS
from trainer_devcluster.kubelet.downward import field_value, resource_value
from trainer_devcluster.kubelet.environment import entries_of
from trainer_devcluster.kubelet.errors import UnsupportedVolumeError, VolumeError
from trainer_devcluster.kubelet.pod_spec import container_named
from trainer_devcluster.kubelet.volume_files import VolumeFile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer.kube.objects import Object
    from trainer.kube.resource import Resource
    from trainer_devcluster.kubelet.downward import PodFacts
    from trainer_devcluster.kubelet.environment import ConfigReader
    from trainer_devcluster.kubelet.service_account_tokens import PodTokens

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
