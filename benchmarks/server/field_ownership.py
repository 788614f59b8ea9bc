"""`metadata.managedFields` as a real API server writes it, so that canned objects have the weight of real ones."""

from __future__ import annotations

from typing import Any, TypeAlias

from trainer.kube import Object

JSON: TypeAlias = Any

_MERGE_KEYS = ("uid", "type", "containerPort", "mountPath", "name", "ip", "key")
"""Fields that identify an item of a list with `x-kubernetes-list-type: map`; the first that the item has wins."""


def managed_by(manager: str, owned: Object, *, time: str, subresource: str = "") -> Object:
    """One entry: the manager owns every field in `owned`."""
    entry: Object = {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": time,
        "fieldsType": "FieldsV1",
        "fieldsV1": _fields(owned),
    }
    return entry | {"subresource": subresource} if subresource else entry


def _fields(value: JSON) -> Object:
    """FieldsV1 (structured-merge-diff): `f:` before a field, `k:` before the key of a list's item, `.` for itself."""
    if isinstance(value, dict):
        return {f"f:{name}": _fields(part) for name, part in value.items()}
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        return {_item_key(item): {".": {}} | _fields(item) for item in value}
    return {}


def _item_key(item: Object) -> str:
    key = next((name for name in _MERGE_KEYS if name in item), None)
    if key is None:
        return "v:" + str(sorted(item))
    text = f'"{item[key]}"' if isinstance(item[key], str) else str(item[key])
    return f'k:{{"{key}":{text}}}'
