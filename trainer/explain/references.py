"""The objects that a pod names, and cannot start without."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from trainer.kube.objects import Object, mapping_at, objects_in
from trainer.kube.resource import (
    CONFIG_MAPS,
    PERSISTENT_VOLUME_CLAIMS,
    PRIORITY_CLASSES,
    RUNTIME_CLASSES,
    SECRETS,
    SERVICE_ACCOUNTS,
    Resource,
)


class Reference(NamedTuple):
    """An object, and the field that names it."""

    resource: Resource
    name: str
    field: str


def references(spec: Object) -> Iterator[Reference]:
    """The objects that the spec of a pod names and that are not optional, with the field in it that names each."""
    for resource, field in (
        (SERVICE_ACCOUNTS, "serviceAccountName"),
        (PRIORITY_CLASSES, "priorityClassName"),
        (RUNTIME_CLASSES, "runtimeClassName"),
    ):
        if isinstance(spec.get(field), str) and spec[field]:
            yield Reference(resource, spec[field], field)
    for secret in objects_in(spec.get("imagePullSecrets")):
        yield from _named(SECRETS, secret, "name", "imagePullSecrets")
    for volume in objects_in(spec.get("volumes")):
        yield from _of_volume(volume)
    for kind in ("initContainers", "containers"):
        for container in objects_in(spec.get(kind)):
            yield from _of_container(container, f"{kind}[{container.get('name')}]")


def _of_volume(volume: Object) -> Iterator[Reference]:
    field = f"volumes[{volume.get('name')}]"
    yield from _named(CONFIG_MAPS, mapping_at(volume, "configMap"), "name", f"{field}.configMap")
    yield from _named(SECRETS, mapping_at(volume, "secret"), "secretName", f"{field}.secret")
    claim = mapping_at(volume, "persistentVolumeClaim")
    yield from _named(PERSISTENT_VOLUME_CLAIMS, claim, "claimName", f"{field}.persistentVolumeClaim")
    for source in objects_in(mapping_at(volume, "projected").get("sources")):
        yield from _named(CONFIG_MAPS, mapping_at(source, "configMap"), "name", f"{field}.projected")
        yield from _named(SECRETS, mapping_at(source, "secret"), "name", f"{field}.projected")


def _of_container(container: Object, field: str) -> Iterator[Reference]:
    for source in objects_in(container.get("envFrom")):
        yield from _named(CONFIG_MAPS, mapping_at(source, "configMapRef"), "name", f"{field}.envFrom")
        yield from _named(SECRETS, mapping_at(source, "secretRef"), "name", f"{field}.envFrom")
    for variable in objects_in(container.get("env")):
        place = f"{field}.env[{variable.get('name')}]"
        yield from _named(CONFIG_MAPS, mapping_at(variable, "valueFrom", "configMapKeyRef"), "name", place)
        yield from _named(SECRETS, mapping_at(variable, "valueFrom", "secretKeyRef"), "name", place)


def _named(resource: Resource, source: Object, member: str, field: str) -> Iterator[Reference]:
    name = source.get(member)
    if isinstance(name, str) and name and source.get("optional") is not True:
        yield Reference(resource, name, field)
