"""Correlation: which part of the stored object a part of the new one corresponds to.

Fields and map keys correspond by name, items of `x-kubernetes-list-type: map` lists by their keys; items of sets and
atomic lists correspond to nothing (Kubernetes documentation, "Transition rules").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

ABSENT: Final = object()
"""Stands for an old value that does not exist or cannot be found."""


def same(left: object, right: object) -> bool:
    """Whether two JSON values are equal; unlike in Python, true is not 1."""
    return left is right or (left == right and _same_types(left, right))


def _same_types(left: object, right: object) -> bool:
    """Whether two values that are equal for Python have booleans in the same places."""
    if left is right:
        return True
    if isinstance(left, dict) and isinstance(right, dict):
        return all(_same_types(child, right[key]) for key, child in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return all(map(_same_types, left, right))
    return isinstance(left, bool) == isinstance(right, bool)


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
