"""Validation of what the downward API refers to (core/v1 ObjectFieldSelector and ResourceFieldSelector)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from trainer.kube.field_errors import invalid, not_supported, required
from trainer.kube.quantity import parse_quantity
from trainer_devcluster.apiserver.objects.names import qualified_name_problems

if TYPE_CHECKING:
    from collections.abc import Collection

    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object

ENVIRONMENT_FIELDS: Final = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
"""Fields that environment variables may have, beside single labels and annotations."""
VOLUME_FIELDS: Final = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
"""Fields that files may have, beside single labels and annotations."""
_KNOWN: Final = frozenset(
    (*ENVIRONMENT_FIELDS, *VOLUME_FIELDS, "spec.restartPolicy", "spec.schedulerName", "status.phase")
)
_SUBSCRIPT: Final = re.compile(r"(?P<field>[^\[\]]+)\['(?P<key>.*)'\]")
_RESOURCES: Final = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
_HUGE_PAGES: Final = ("limits.hugepages-", "requests.hugepages-")
_CPU_DIVISORS: Final = ("1m", "1")
_SIZE_DIVISORS: Final = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")


def validate_field_reference(reference: Object, path: str, allowed: Collection[str]) -> list[FieldError]:
    """What is wrong with a `fieldRef`."""
    version, field = reference.get("apiVersion"), reference.get("fieldPath")
    if not version:
        return [required(f"{path}.apiVersion")]
    if not field:
        return [required(f"{path}.fieldPath")]
    if version != "v1":
        return [invalid(f"{path}.fieldPath", field, f"error converting fieldPath: unsupported pod version: {version}")]
    subscript = _SUBSCRIPT.fullmatch(field)
    if subscript is not None:
        if subscript["field"] not in {"metadata.annotations", "metadata.labels"}:
            detail = f"error converting fieldPath: field label does not support subscript: {field}"
            return [invalid(f"{path}.fieldPath", field, detail)]
        key = subscript["key"].lower() if subscript["field"] == "metadata.annotations" else subscript["key"]
        return [invalid(path, key, problem) for problem in qualified_name_problems(key)]
    if field not in _KNOWN:
        detail = f"error converting fieldPath: field label not supported: {field}"
        return [invalid(f"{path}.fieldPath", field, detail)]
    return [] if field in allowed else [not_supported(f"{path}.fieldPath", field, sorted(allowed))]


def validate_resource_reference(reference: Object, path: str, *, in_volume: bool = False) -> list[FieldError]:
    """What is wrong with a `resourceFieldRef`."""
    if in_volume and not reference.get("containerName"):
        return [required(f"{path}.containerName")]
    resource = reference.get("resource")
    if not resource:
        return [required(f"{path}.resource")]
    if resource not in _RESOURCES and not resource.startswith(_HUGE_PAGES):
        return [not_supported(f"{path}.resource", resource, _RESOURCES)]
    return _validate_divisor(reference.get("divisor"), resource, path)


def _validate_divisor(divisor: object, resource: str, path: str) -> list[FieldError]:
    if divisor in (None, "", "0", 0):
        return []
    name = resource.partition(".")[2]
    allowed = _CPU_DIVISORS if name == "cpu" else _SIZE_DIVISORS
    try:
        fits = parse_quantity(divisor) in {parse_quantity(entry) for entry in allowed}
    except ValueError:
        fits = False
    if fits:
        return []
    kind = "local ephemeral storage" if name == "ephemeral-storage" else "hugepages" if "hugepages" in name else name
    values = " and ".join(allowed) if name == "cpu" else ", ".join(allowed)
    return [
        invalid(f"{path}.divisor", divisor, f"only divisor's values {values} are supported with the {kind} resource")
    ]
