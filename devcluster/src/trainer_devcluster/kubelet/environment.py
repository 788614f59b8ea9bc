"""The environment variables and the command line of a container."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from trainer.kube.errors import NotFoundError
from trainer.kube.objects import namespace_of
from trainer.kube.resource import CONFIG_MAPS, SECRETS
from trainer_devcluster.kubelet.downward import field_value, resource_value
from trainer_devcluster.kubelet.errors import ContainerConfigError, ContainerCreateError
from trainer_devcluster.kubelet.pod_spec import container_named

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trainer.kube.client import Client
    from trainer.kube.objects import Object
    from trainer.kube.resource import Resource
    from trainer_devcluster.kubelet.downward import PodFacts

_REFERENCE = re.compile(r"\$(?:(\$)|\(([^)]*)\))")
_LABELS = {CONFIG_MAPS: "configmap", SECRETS: "secret"}


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace `$(NAME)` by the variable's value; unknown names stay as they are and `$$` is a plain `$`."""

    def replacement(match: re.Match[str]) -> str:
        return "$" if match[1] else variables.get(match[2], match[0])

    return _REFERENCE.sub(replacement, text)


def references(text: str) -> list[str]:
    """The names in `$(NAME)`."""
    return [match[2] for match in _REFERENCE.finditer(text) if match[2] is not None]


@dataclass(slots=True)
class EnvironmentBuilder:
    """Collects the variables of one container as Kubernetes does: Services, envFrom, then env; later ones win."""

    pod: Object
    container: Mapping[str, Any]
    facts: PodFacts
    reader: ConfigReader
    rewrite: Callable[[str], str] = str
    """Applied to each value, for networks in which pod names do not resolve. Default: nothing changes."""
    services: Mapping[str, str] = field(default_factory=dict)
    """Variables about Services. Default: none."""
    _variables: dict[str, str] = field(default_factory=dict)
    _cache: dict[tuple[Resource, str], dict[str, bytes] | None] = field(default_factory=dict)

    async def build(self) -> dict[str, str]:
        """The variables that the container's specification defines.

        Raises:
            ContainerConfigError: a ConfigMap, Secret, key or field that is not optional does not exist.
        """
        self._variables |= self.services
        for source in self.container.get("envFrom") or []:
            await self._add_all(source)
        for variable in self.container.get("env") or []:
            value = await self._value_of(variable)
            if value is not None:
                self._variables[variable["name"]] = self.rewrite(value)
        return self._variables

    async def _add_all(self, source: Mapping[str, Any]) -> None:
        resource = SECRETS if "secretRef" in source else CONFIG_MAPS
        reference = source.get("secretRef") or source.get("configMapRef") or {}
        entries = await self._entries(resource, reference)
        for key, value in sorted((entries or {}).items()):
            self._variables[(source.get("prefix") or "") + key] = self.rewrite(_text(value))

    async def _value_of(self, variable: Mapping[str, Any]) -> str | None:
        source = variable.get("valueFrom")
        if not source:
            return expand(variable.get("value") or "", self._variables)
        try:
            if reference := source.get("fieldRef"):
                return field_value(self.pod, reference["fieldPath"], self.facts)
            if reference := source.get("resourceFieldRef"):
                name = reference.get("containerName")
                container = container_named(self.pod, name) if name else self.container
                return resource_value(container, reference, self.facts)
        except ValueError as error:
            raise ContainerConfigError(f"environment variable {variable['name']}: {error}") from error
        if reference := source.get("configMapKeyRef"):
            return await self._key(CONFIG_MAPS, reference)
        if reference := source.get("secretKeyRef"):
            return await self._key(SECRETS, reference)
        raise ContainerConfigError(
            f"environment variable {variable['name']}: the dev cluster does not support valueFrom.{next(iter(source))}"
        )

    async def _key(self, resource: Resource, reference: Mapping[str, Any]) -> str | None:
        entries = await self._entries(resource, reference)
        if entries is not None and reference["key"] in entries:
            return _text(entries[reference["key"]])
        if reference.get("optional"):
            return None
        where = f"{namespace_of(self.pod)}/{reference['name']}"
        raise ContainerConfigError(f"couldn't find key {reference['key']} in {resource.kind} {where}")

    async def _entries(self, resource: Resource, reference: Mapping[str, Any]) -> dict[str, bytes] | None:
        identity = (resource, reference.get("name") or "")
        if identity not in self._cache:
            obj = await self.reader.read(resource, namespace_of(self.pod), identity[1])
            self._cache[identity] = None if obj is None else entries_of(resource, obj)
        entries = self._cache[identity]
        if entries is None and not reference.get("optional"):
            raise ContainerConfigError(f'{_LABELS[resource]} "{identity[1]}" not found')
        return entries


def command_line(container: Mapping[str, Any], variables: Mapping[str, str]) -> tuple[str, ...]:
    """`command` and `args`, expanded.

    Raises:
        ContainerCreateError: there is no command.
    """
    if not container.get("command"):
        raise ContainerCreateError(
            f'container "{container["name"]}" has no command: the dev cluster does not pull images, so it does not '
            f"know what {container.get('image') or 'the image'} would run; set command"
        )
    words = (*container["command"], *(container.get("args") or []))
    return tuple(expand(word, variables) for word in words)


def _text(value: bytes) -> str:
    # As os.environ does it: bytes that are no UTF-8 reach the program unchanged.
    return value.decode("utf-8", "surrogateescape")


class ConfigReader(Protocol):
    """Looks up objects that pods refer to."""

    async def read(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """The object, or None if there is none."""


class ClientConfigReader:
    """Reads from the API server, uncached: a pod must see what was written before it was created."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def read(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """See `ConfigReader.read`."""
        try:
            return await self._client.get(resource, name, namespace)
        except NotFoundError:
            return None


def entries_of(resource: Resource, obj: Object) -> dict[str, bytes]:
    """The data of a ConfigMap (binaryData included) or Secret."""
    data = obj.get("data") or {}
    if resource == SECRETS:
        return {key: base64.b64decode(value or "") for key, value in data.items()}
    binary = obj.get("binaryData") or {}
    return {key: value.encode() for key, value in data.items()} | {
        key: base64.b64decode(value or "") for key, value in binary.items()
    }
