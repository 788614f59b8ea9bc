"""Validation of pod volumes and of where containers mount them (core/v1 Volume and VolumeMount)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trainer.kube.field_errors import duplicate, forbidden, invalid, not_found, not_supported, required
from trainer.kube.quantity import parse_quantity
from trainer_devcluster.apiserver.kinds.pods.field_references import (
    VOLUME_FIELDS,
    validate_field_reference,
    validate_resource_reference,
)
from trainer_devcluster.apiserver.kinds.pods.lists import objects_in, validate_label_name

if TYPE_CHECKING:
    from collections.abc import Collection

    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object

_MODE_TEXT: Final = "must be a number between 0 and 0777 (octal), both inclusive"
_MAX_MODE: Final = 0o777
_HOST_PATH_TYPES: Final = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
)  # fmt: skip
_PROPAGATIONS: Final = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE_READ_ONLY: Final = ("Disabled", "Enabled", "IfPossible")
_MIN_TOKEN_SECONDS: Final = 600
_MAX_TOKEN_SECONDS: Final = 1 << 32
_ONE_REFERENCE: Final = "one of fieldRef and resourceFieldRef is required"
_TWO_REFERENCES: Final = "fieldRef and resourceFieldRef can not be specified simultaneously"


def validate_volumes(volumes: Any, path: str, causes: list[FieldError]) -> set[str]:
    """The names of a pod's volumes; what is wrong with the volumes is added to the causes."""
    names: set[str] = set()
    for place, volume in objects_in(volumes, path, causes):
        kinds = [kind for kind in volume if kind != "name" and volume[kind] is not None]
        causes += [forbidden(f"{place}.{kind}", "may not specify more than 1 volume type") for kind in kinds[1:]]
        if kinds and isinstance(volume[kinds[0]], dict):
            causes += _validate_source(kinds[0], volume[kinds[0]], f"{place}.{kinds[0]}")
        elif not kinds:
            causes.append(required(place, "must specify a volume type"))
        name = volume.get("name")
        if not name:
            causes.append(required(f"{place}.name"))
            continue
        causes += validate_label_name(name, f"{place}.name")
        if name in names:
            causes.append(duplicate(f"{place}.name", name))
        names.add(name)
    return names


def validate_mounts(container: Object, path: str, volumes: Collection[str]) -> list[FieldError]:
    """What is wrong with `volumeMounts` at `path`."""
    causes: list[FieldError] = []
    mounted: set[str] = set()
    for place, mount in objects_in(container.get("volumeMounts"), path, causes):
        name, mount_path = mount.get("name"), mount.get("mountPath")
        if not name:
            causes.append(required(f"{place}.name"))
        elif name not in volumes:
            causes.append(not_found(f"{place}.name", name))
        if not mount_path:
            causes.append(required(f"{place}.mountPath"))
        if mount_path in mounted:
            causes.append(invalid(f"{place}.mountPath", mount_path, "must be unique"))
        mounted.add(mount_path or "")
        causes += _validate_sub_paths(mount, place) + _validate_mount_options(mount, place)
    return causes


def _validate_sub_paths(mount: Object, path: str) -> list[FieldError]:
    sub_path, expression = mount.get("subPath"), mount.get("subPathExpr")
    causes = _descending(sub_path, f"{path}.subPath") if sub_path else []
    if expression:
        if sub_path:
            detail = "subPathExpr and subPath are mutually exclusive"
            causes.append(invalid(f"{path}.subPathExpr", expression, detail))
        causes += _descending(expression, f"{path}.subPathExpr")
    return causes


def _validate_mount_options(mount: Object, path: str) -> list[FieldError]:
    causes: list[FieldError] = []
    propagation, recursive = mount.get("mountPropagation"), mount.get("recursiveReadOnly")
    if propagation is not None and propagation not in _PROPAGATIONS:
        causes.append(not_supported(f"{path}.mountPropagation", propagation, _PROPAGATIONS))
    if recursive is None or recursive == "Disabled":
        return causes
    place = f"{path}.recursiveReadOnly"
    if recursive not in _RECURSIVE_READ_ONLY:
        return [*causes, not_supported(place, recursive, _RECURSIVE_READ_ONLY)]
    if not mount.get("readOnly"):
        causes.append(forbidden(place, "may only be specified when readOnly is true"))
    if propagation not in (None, "None"):
        causes.append(forbidden(place, "may only be specified when mountPropagation is None or not specified"))
    return causes


def _validate_source(kind: str, source: Object, path: str) -> list[FieldError]:
    match kind:
        case "configMap":
            return _named(source, "name", path) + _validate_files(source, path)
        case "secret":
            return _named(source, "secretName", path) + _validate_files(source, path)
        case "downwardAPI":
            return _validate_mode(source, "defaultMode", path) + _validate_downward(source, path)
        case "projected":
            return _validate_projected(source, path)
        case "persistentVolumeClaim":
            return _named(source, "claimName", path)
        case "hostPath":
            return _validate_host_path(source, path)
        case "emptyDir":
            return _validate_size(source.get("sizeLimit"), f"{path}.sizeLimit")
        case "ephemeral":
            return [] if source.get("volumeClaimTemplate") else [required(f"{path}.volumeClaimTemplate")]
    return []


def _named(source: Object, field: str, path: str) -> list[FieldError]:
    return [] if source.get(field) else [required(f"{path}.{field}")]


def _validate_size(size: Any, path: str) -> list[FieldError]:
    try:
        is_valid = size is None or parse_quantity(size) >= 0
    except ValueError:
        is_valid = False
    return [] if is_valid else [forbidden(path, "SizeLimit field must be a valid resource quantity")]


def _validate_host_path(source: Object, path: str) -> list[FieldError]:
    if not source.get("path"):
        return [required(f"{path}.path")]
    causes = _without_backsteps(source["path"], f"{path}.path")
    kind = source.get("type") or ""
    return causes if kind in _HOST_PATH_TYPES else [*causes, not_supported(f"{path}.type", kind, _HOST_PATH_TYPES)]


def _validate_files(source: Object, path: str) -> list[FieldError]:
    causes = _validate_mode(source, "defaultMode", path)
    for place, item in objects_in(source.get("items"), f"{path}.items", causes):
        if not item.get("key"):
            causes.append(required(f"{place}.key"))
        causes += _validate_file_path(item.get("path"), f"{place}.path") + _validate_mode(item, "mode", place)
    return causes


def _validate_downward(source: Object, path: str) -> list[FieldError]:
    causes: list[FieldError] = []
    for place, item in objects_in(source.get("items"), f"{path}.items", causes):
        field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
        causes += _validate_file_path(item.get("path"), f"{place}.path")
        if field is not None:
            causes += validate_field_reference(field, f"{place}.fieldRef", VOLUME_FIELDS)
            if resource is not None:
                causes.append(invalid(place, "resource", _TWO_REFERENCES))
        elif resource is not None:
            causes += validate_resource_reference(resource, f"{place}.resourceFieldRef", in_volume=True)
        else:
            causes.append(required(place, _ONE_REFERENCE))
        causes += _validate_mode(item, "mode", place)
    return causes


def _validate_projected(source: Object, path: str) -> list[FieldError]:
    causes = _validate_mode(source, "defaultMode", path)
    for place, projection in objects_in(source.get("sources"), f"{path}.sources", causes):
        kinds = [kind for kind in projection if projection[kind] is not None]
        causes += [forbidden(f"{place}.{kind}", "may not specify more than 1 volume type") for kind in kinds[1:]]
        if kinds:
            causes += _validate_projection(kinds[0], projection[kinds[0]], f"{place}.{kinds[0]}")
        else:
            causes.append(required(place, "must specify one of: secret, configMap, downwardAPI, serviceAccountToken"))
    return causes


def _validate_projection(kind: str, source: Object, path: str) -> list[FieldError]:
    match kind:
        case "configMap" | "secret":
            return _named(source, "name", path) + _validate_files(source, path)
        case "downwardAPI":
            return _validate_downward(source, path)
        case "serviceAccountToken":
            return _validate_token(source, path)
    return []


def _validate_token(source: Object, path: str) -> list[FieldError]:
    seconds, causes = source.get("expirationSeconds"), []
    if seconds is not None and seconds < _MIN_TOKEN_SECONDS:
        causes.append(invalid(f"{path}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes"))
    elif seconds is not None and seconds > _MAX_TOKEN_SECONDS:
        detail = "may not specify a duration larger than 2^32 seconds"
        causes.append(invalid(f"{path}.expirationSeconds", seconds, detail))
    return causes + _validate_file_path(source.get("path"), f"{path}.path")


def _validate_mode(source: Object, field: str, path: str) -> list[FieldError]:
    mode = source.get(field)
    return [] if mode is None or 0 <= mode <= _MAX_MODE else [invalid(f"{path}.{field}", mode, _MODE_TEXT)]


def _validate_file_path(path: Any, place: str) -> list[FieldError]:
    if not path:
        return [required(place)]
    causes = _descending(path, place)
    is_reserved = path.startswith("..") and not path.startswith("../") and path != ".."
    return [*causes, invalid(place, path, "must not start with '..'")] if is_reserved else causes


def _descending(path: str, place: str) -> list[FieldError]:
    causes = [invalid(place, path, "must be a relative path")] if path.startswith("/") else []
    return causes + _without_backsteps(path, place)


def _without_backsteps(path: str, place: str) -> list[FieldError]:
    return [invalid(place, path, "must not contain '..'")] if ".." in path.split("/") else []
