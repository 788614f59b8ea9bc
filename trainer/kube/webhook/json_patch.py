"""JSON patch (RFC 6902): the operations that turn one object into another."""

from __future__ import annotations

from typing import Any

import msgspec

from trainer.kube.objects import Object


def json_patch(old: Object, new: Object) -> list[Object]:
    """Operations that make `new` of `old`, only of the kinds add, remove and replace; empty when they are equal.

    As small as the changes are for objects, and for lists in which one run of items was inserted, removed or changed.
    Numbers are compared as JSON shows them: 1, 1.0 and true are three values.
    """
    operations: list[Object] = []
    _compare(old, new, "", operations)
    return operations


def _compare(old: Any, new: Any, path: str, operations: list[Object]) -> None:
    if isinstance(old, dict) and isinstance(new, dict):
        _compare_objects(old, new, path, operations)
    elif isinstance(old, list) and isinstance(new, list):
        _compare_lists(old, new, path, operations)
    elif not _is_same(old, new):
        operations.append({"op": "replace", "path": path, "value": new})


def _compare_objects(old: Object, new: Object, path: str, operations: list[Object]) -> None:
    operations += [{"op": "remove", "path": f"{path}/{_escaped(name)}"} for name in old if name not in new]
    for name, value in new.items():
        if name not in old:
            operations.append({"op": "add", "path": f"{path}/{_escaped(name)}", "value": value})
        elif not _is_same(old[name], value):
            _compare(old[name], value, f"{path}/{_escaped(name)}", operations)


def _compare_lists(old: list[Any], new: list[Any], path: str, operations: list[Object]) -> None:
    """Leave what both begin and end with alone, pair the items between, then add or remove what is left over."""
    shorter = min(len(old), len(new))
    start = next((index for index in range(shorter) if not _is_same(old[index], new[index])), shorter)
    end = next((index for index in range(shorter - start) if not _is_same(old[-1 - index], new[-1 - index])), None)
    kept_at_end = shorter - start if end is None else end
    old_end, new_end = len(old) - kept_at_end, len(new) - kept_at_end
    paired = min(old_end, new_end)
    for index in range(start, paired):
        _compare(old[index], new[index], f"{path}/{index}", operations)
    # From the back, so that the indexes of those still to be removed stay what they are.
    operations += [{"op": "remove", "path": f"{path}/{index}"} for index in reversed(range(paired, old_end))]
    operations += [{"op": "add", "path": f"{path}/{index}", "value": new[index]} for index in range(paired, new_end)]


def _is_same(old: Any, new: Any) -> bool:
    """Whether both are the same JSON; most of a large object is, so that it is not walked through here."""
    if type(old) is not type(new):
        return False
    if isinstance(old, dict | list):
        return len(old) == len(new) and msgspec.json.encode(old) == msgspec.json.encode(new)
    return bool(old == new)


def _escaped(name: str) -> str:
    """A member's name as part of a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")
