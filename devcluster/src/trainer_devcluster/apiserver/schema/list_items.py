"""Items of lists (`x-kubernetes-list-type`): which occur twice, and which old item each one replaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainer.kube import field_errors
from trainer.kube.api_semantics.json_values import ABSENT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer.kube.field_errors import FieldError


def duplicates(value: Any, schema: Mapping[str, Any], path: str) -> list[FieldError]:
    """The items of sets and map lists in a value that are there already.

    Args:
        value: any JSON value.
        schema: its structural schema.
        path: where it is.
    """
    causes: list[FieldError] = []
    if isinstance(value, list):
        causes += _in_list(value, schema, path)
        items = schema.get("items") or {}
        for index, item in enumerate(value):
            causes += duplicates(item, items, f"{path}[{index}]")
    elif isinstance(value, dict):
        properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
        for name, child in value.items():
            nested = properties.get(name)
            if nested is not None:
                causes += duplicates(child, nested, f"{path}.{name}" if path else name)
            elif isinstance(additional, dict):
                causes += duplicates(child, additional, f"{path}[{name}]")
    return causes


def _in_list(items: list[Any], schema: Mapping[str, Any], path: str) -> list[FieldError]:
    list_type = schema.get("x-kubernetes-list-type")
    if list_type not in ("set", "map"):
        return []
    causes, seen = [], set()
    for index, item in enumerate(items):
        key = item_key(item, schema) if list_type == "map" else (field_errors.show(item),)
        if key is None:
            continue
        if key in seen:
            shown = item
            if list_type == "map":
                shown = {name: item[name] for name in schema["x-kubernetes-list-map-keys"] if name in item}
            causes.append(field_errors.duplicate(f"{path}[{index}]", shown))
        seen.add(key)
    return causes


def item_key(item: object, schema: Mapping[str, Any]) -> tuple[object, ...] | None:
    """What tells an item of a map list apart: its key fields, defaults filled in; None when it is no object."""
    if not isinstance(item, dict):
        return None
    properties = (schema.get("items") or {}).get("properties") or {}
    return tuple(
        repr(item.get(key, (properties.get(key) or {}).get("default")))
        for key in schema.get("x-kubernetes-list-map-keys") or ()
    )


def old_items(items: list[Any], old: object, schema: Mapping[str, Any]) -> list[Any]:
    """For every item of a list the corresponding old item, or `ABSENT`."""
    if schema.get("x-kubernetes-list-type") != "map" or not isinstance(old, list):
        return [ABSENT] * len(items)
    by_key = {item_key(item, schema): item for item in old}
    return [by_key.get(item_key(item, schema), ABSENT) for item in items]
