"""The environment variables and the command line of a container, and what it may learn about its pod (downward API)."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from trainer.kube.client import Client
from trainer.kube.errors import NotFoundError
from trainer.kube.objects import Object, annotations_of, labels_of, name_of, namespace_of, uid_of
from trainer.kube.quantity import parse_quantity
from trainer.kube.resource import CONFIG_MAPS, SECRETS, Resource
from trainer_devcluster.kubelet.errors import ContainerConfigError, ContainerCreateError
from trainer_devcluster.kubelet.network.pod_network import ApiAddress
from trainer_devcluster.kubelet.pod_spec import container_named
from trainer_devcluster.kubelet.variable_references import expand

_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


@dataclass(frozen=True, slots=True)
class PodFacts:
    """Facts about a pod that the kubelet knows before it writes the status."""

    pod_ip: str
    host_ip: str
    allocatable: Mapping[str, str]
    """Resources of the node; they stand in for limits that are not set."""


def field_value(pod: Object, path: str, facts: PodFacts) -> str:
    """The value of a `fieldRef`; empty for a label or annotation that is not set.

    Raises:
        ValueError: the downward API has no such field.
    """
    spec = pod.get("spec") or {}
    known = {
        "metadata.name": name_of(pod),
        "metadata.namespace": namespace_of(pod),
        "metadata.uid": uid_of(pod),
        "spec.nodeName": spec.get("nodeName") or "",
        "spec.serviceAccountName": spec.get("serviceAccountName") or "default",
        "status.hostIP": facts.host_ip,
        "status.hostIPs": facts.host_ip,
        "status.podIP": facts.pod_ip,
        "status.podIPs": facts.pod_ip,
    }
    if path in known:
        return str(known[path])
    maps = {"labels": labels_of(pod), "annotations": annotations_of(pod)}
    if subscript := _SUBSCRIPT.fullmatch(path):
        return maps[subscript[1]].get(subscript[2], "")
    if path in {"metadata.labels", "metadata.annotations"}:
        entries = sorted(maps[path.removeprefix("metadata.")].items())
        return "\n".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in entries)
    raise ValueError(f"fieldPath {path!r} is not supported by the downward API")


def resource_value(container: Mapping[str, Any], reference: Mapping[str, Any], facts: PodFacts) -> str:
    """The value of a `resourceFieldRef`, in units of its divisor, rounded up.

    Raises:
        ValueError: no such resource, or a wrong quantity.
    """
    kind, _, resource = str(reference.get("resource") or "").partition(".")
    if kind not in {"limits", "requests"} or not resource:
        raise ValueError(f"resource {reference.get('resource')!r} must be limits.NAME or requests.NAME")
    divisor = parse_quantity(reference.get("divisor") or "1") or 1
    resources = container.get("resources") or {}
    amount = (resources.get(kind) or {}).get(resource)
    if amount is None:
        amount = facts.allocatable.get(resource, "0") if kind == "limits" else "0"
    return str(math.ceil(parse_quantity(amount) / divisor))


_LABELS = {CONFIG_MAPS: "configmap", SECRETS: "secret"}


@dataclass(slots=True)
class EnvironmentBuilder:
    """Collects the variables of one container as Kubernetes does: the API server, envFrom, then env; later ones win."""

    pod: Object
    container: Mapping[str, Any]
    facts: PodFacts
    reader: ConfigReader
    rewrite: Callable[[str], str] = str
    """Applied to each value, for networks in which pod names do not resolve. Default: nothing changes."""
    api_server: ApiAddress | None = None
    """Where pods reach the API server. Default: they do not."""
    _variables: dict[str, str] = field(default_factory=dict)
    _cache: dict[tuple[Resource, str], dict[str, bytes] | None] = field(default_factory=dict)

    async def build(self) -> dict[str, str]:
        """The variables that the container's specification defines.

        Raises:
            ContainerConfigError: a ConfigMap, Secret, key or field that is not optional does not exist.
        """
        self._variables |= api_server_variables(self.api_server)
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


class ConfigReader:
    """Looks up objects that pods refer to, uncached: a pod must see what was written before it was created."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def read(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """The object, or None if there is none."""
        try:
            return await self._client.get(resource, name, namespace)
        except NotFoundError:
            return None


def api_server_variables(address: ApiAddress | None) -> dict[str, str]:
    """The variables by which clients in a pod find the API server; those of other Services lead nowhere here.

    Args:
        address: where pods reach it; None if they do not.
    """
    if address is None:
        return {}
    url = f"tcp://{address.host}:{address.port}"
    own = f"KUBERNETES_PORT_{address.port}_TCP"
    return {
        "KUBERNETES_SERVICE_HOST": address.host,
        "KUBERNETES_SERVICE_PORT": str(address.port),
        "KUBERNETES_SERVICE_PORT_HTTPS": str(address.port),
        "KUBERNETES_PORT": url,
        own: url,
        f"{own}_PROTO": "tcp",
        f"{own}_PORT": str(address.port),
        f"{own}_ADDR": address.host,
    }


def entries_of(resource: Resource, obj: Object) -> dict[str, bytes]:
    """The data of a ConfigMap (binaryData included) or Secret."""
    data = obj.get("data") or {}
    if resource == SECRETS:
        return {key: base64.b64decode(value or "") for key, value in data.items()}
    binary = obj.get("binaryData") or {}
    return {key: value.encode() for key, value in data.items()} | {
        key: base64.b64decode(value or "") for key, value in binary.items()
    }
