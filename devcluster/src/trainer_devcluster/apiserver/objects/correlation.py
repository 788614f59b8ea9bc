"""Correlation: which part of the stored object a part of the new one corresponds to.

Fields and map keys correspond by name, items of `x-kubernetes-list-type: map` lists by their keys; items of sets and
atomic lists correspond to nothing (Kubernetes documentation, "Transition rules").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainer.kube.api_semantics.json_values import ABSENT

if TYPE_CHECKING:
    from collections.abc import Mapping


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
