"""Validation of pod volumes and of where containers mount them (core/v1 Volume and VolumeMount)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

from trainer.kube.field_errors import FieldError, duplicate, forbidden, invalid, not_found, required
from trainer.kube.objects import Object
from trainer_devcluster.apiserver.kinds.fields import dicts, validate_quantity
from trainer_devcluster.apiserver.objects.names import NameRule, name_problems

_MIN_TOKEN_SECONDS: Final = 600
_MAX_MODE: Final = 0o777
_MODE_TEXT: Final = "must be a number between 0 and 0777 (octal), both inclusive"
_REQUIRED: Final = {
    "configMap": "name", "secret": "secretName", "persistentVolumeClaim": "claimName", "hostPath": "path",
    "ephemeral": "volumeClaimTemplate",
}  # fmt: skip


def validate_volumes(volumes: Any, path: str, causes: list[FieldError]) -> set[str]:
    """The names of a pod's volumes; what is wrong with the volumes is added to the causes."""
    names: set[str] = set()
    for index, volume in enumerate(dicts(volumes)):
        place, name = f"{path}[{index}]", volume.get("name")
        kinds = [kind for kind in volume if kind != "name" and volume[kind] is not None]
        causes += [forbidden(f"{place}.{kind}", "may not specify more than 1 volume type") for kind in kinds[1:]]
        for kind in kinds[:1]:
            causes += _validate_source(kind, volume[kind], f"{place}.{kind}", _REQUIRED)
        if not name:
            causes.append(required(f"{place}.name"))
            continue
        causes += [invalid(f"{place}.name", name, problem) for problem in name_problems(name, NameRule.LABEL)]
        if name in names:
            causes.append(duplicate(f"{place}.name", name))
        names.add(name)
    return names


def validate_mounts(container: Object, path: str, volumes: Collection[str]) -> Iterator[FieldError]:
    """What is wrong with `volumeMounts` at `path`."""
    mounted: set[str] = set()
    for index, mount in enumerate(dicts(container.get("volumeMounts"))):
        place, name, mount_path = f"{path}[{index}]", mount.get("name"), mount.get("mountPath")
        if not name:
            yield required(f"{place}.name")
        elif name not in volumes:
            yield not_found(f"{place}.name", name)
        if not mount_path:
            yield required(f"{place}.mountPath")
        elif mount_path in mounted:
            yield invalid(f"{place}.mountPath", mount_path, "must be unique")
        mounted.add(mount_path or "")
        for field in ("subPath", "subPathExpr"):
            yield from _descending(mount.get(field) or "", f"{place}.{field}")
        if mount.get("subPath") and mount.get("subPathExpr"):
            detail = "subPathExpr and subPath are mutually exclusive"
            yield invalid(f"{place}.subPathExpr", mount["subPathExpr"], detail)


def _validate_source(kind: str, source: Object, path: str, wanted: dict[str, str]) -> Iterator[FieldError]:
    if kind in wanted and not source.get(wanted[kind]):
        yield required(f"{path}.{wanted[kind]}")
    yield from _validate_mode(source, "defaultMode", path)
    match kind:
        case "configMap" | "secret" | "downwardAPI":
            for index, item in enumerate(dicts(source.get("items"))):
                yield from _validate_item(kind, item, f"{path}.items[{index}]")
        case "projected":
            for index, projection in enumerate(dicts(source.get("sources"))):
                yield from _validate_projection(projection, f"{path}.sources[{index}]")
        case "serviceAccountToken":
            seconds = source.get("expirationSeconds")
            if seconds is not None and seconds < _MIN_TOKEN_SECONDS:
                detail = "may not specify a duration less than 10 minutes"
                yield invalid(f"{path}.expirationSeconds", seconds, detail)
            yield from _validate_file_path(source.get("path"), f"{path}.path")
        case "hostPath" if ".." in str(source.get("path") or "").split("/"):
            yield invalid(f"{path}.path", source["path"], "must not contain '..'")
        case "emptyDir" if source.get("sizeLimit") is not None:
            yield from validate_quantity(f"{path}.sizeLimit", source["sizeLimit"])


def _validate_item(kind: str, item: Object, path: str) -> Iterator[FieldError]:
    if kind != "downwardAPI" and not item.get("key"):
        yield required(f"{path}.key")
    yield from _validate_file_path(item.get("path"), f"{path}.path")
    yield from _validate_mode(item, "mode", path)
    field = item.get("fieldRef")
    if kind == "downwardAPI" and field is None and item.get("resourceFieldRef") is None:
        yield required(path, "one of fieldRef and resourceFieldRef is required")
    if field is not None and not field.get("fieldPath"):
        yield required(f"{path}.fieldRef.fieldPath")


def _validate_mode(source: Object, field: str, path: str) -> Iterator[FieldError]:
    """What is wrong with the mode of files; 644 instead of 0644 is the usual mistake."""
    mode = source.get(field)
    if mode is not None and not 0 <= mode <= _MAX_MODE:
        yield invalid(f"{path}.{field}", mode, _MODE_TEXT)


def _validate_projection(projection: Object, path: str) -> Iterator[FieldError]:
    kinds = [kind for kind in projection if projection[kind] is not None]
    if len(kinds) != 1:
        yield required(path, "must specify one of: secret, configMap, downwardAPI, serviceAccountToken")
    for kind in kinds:
        yield from _validate_source(kind, projection[kind], f"{path}.{kind}", {"configMap": "name", "secret": "name"})


def _validate_file_path(path: Any, place: str) -> Iterator[FieldError]:
    if not path:
        yield required(place)
    elif path.startswith("..") and not path.startswith("../") and path != "..":
        yield invalid(place, path, "must not start with '..'")
    else:
        yield from _descending(path, place)


def _descending(path: str, place: str) -> Iterator[FieldError]:
    if path.startswith("/"):
        yield invalid(place, path, "must be a relative path")
    if ".." in path.split("/"):
        yield invalid(place, path, "must not contain '..'")
