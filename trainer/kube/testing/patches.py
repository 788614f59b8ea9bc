"""The three patch types: merge (RFC 7386), JSON (RFC 6902) and strategic merge.

Strategic merge knows the lists that controllers patch, not the schemas: a list whose name is in `_MERGE_KEYS` merges
its items by that key, finalizers merge as a set, all other lists are replaced. `$patch`, `$deleteFromPrimitiveList`
and `$retainKeys` work; `$setElementOrder` is ignored, so a merged list may have another order than on a real server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from trainer.kube.testing import statuses
from trainer.kube.testing.storage import json_copy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trainer.kube.objects import Object

_MERGE_KEYS: dict[str, tuple[str, ...]] = {
    "addresses": ("type",),
    "conditions": ("type",),
    "containers": ("name",),
    "env": ("name",),
    "ephemeralContainers": ("name",),
    "hostAliases": ("ip",),
    "imagePullSecrets": ("name",),
    "initContainers": ("name",),
    "ownerReferences": ("uid",),
    "ports": ("containerPort", "port"),
    "secrets": ("name",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
}
"""Keys by which items of a list merge, by the name of the list; the first that the item has counts."""

_SETS = {"finalizers"}
_DELETE_ITEMS = "$deleteFromPrimitiveList/"


def merge(target: Any, patch: Any) -> Any:
    """A merge patch; neither argument is changed."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), value)
    return merged


def strategic_merge(target: Any, patch: Any) -> Any:
    """A strategic merge patch; neither argument is changed.

    Raises:
        BadRequestError: a directive or the item of a list is malformed.
    """
    if not isinstance(patch, dict):
        return patch
    directive = patch.get("$patch", "merge")
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != "$patch"}
    if directive == "delete":
        return {}
    if directive != "merge":
        raise statuses.bad_request(f"unknown $patch directive {directive!r}: use merge, replace or delete")
    merged = dict(target) if isinstance(target, dict) else {}
    if "$retainKeys" in patch:
        merged = {name: value for name, value in merged.items() if name in patch["$retainKeys"]}
    for name, value in patch.items():
        if name.startswith(_DELETE_ITEMS):
            field = name.removeprefix(_DELETE_ITEMS)
            merged[field] = [item for item in merged.get(field) or [] if item not in value]
        elif not name.startswith("$"):
            _merge_field(merged, name, value)
    return {name: value for name, value in merged.items() if value != [] or f"{_DELETE_ITEMS}{name}" not in patch}


def _merge_field(merged: Object, name: str, value: Any) -> None:
    if value is None:
        merged.pop(name, None)
    elif isinstance(value, list) and name in _SETS:
        present = merged.get(name) or []
        merged[name] = [*present, *(item for item in value if item not in present)]
    elif isinstance(value, list) and name in _MERGE_KEYS:
        merged[name] = _merge_items(name, merged.get(name) or [], value)
    else:
        merged[name] = strategic_merge(merged.get(name), value)


def _merge_items(field: str, present: list[Object], patch: list[Object]) -> list[Object]:
    if any(item == {"$patch": "replace"} for item in patch):
        return [item for item in patch if item != {"$patch": "replace"}]
    items = list(present)
    for change in patch:
        key = next((key for key in _MERGE_KEYS[field] if key in change), None)
        if key is None:
            wanted = " or ".join(_MERGE_KEYS[field])
            raise statuses.bad_request(f"an item of {field} lacks {wanted}, by which the items merge")
        index = next((index for index, item in enumerate(items) if item.get(key) == change[key]), None)
        if change.get("$patch") == "delete":
            items = [item for item in items if item.get(key) != change[key]]
        elif index is None:
            items.append(strategic_merge({}, change))
        else:
            items[index] = strategic_merge(items[index], change)
    return items


_Container: TypeAlias = "dict[str, Any] | list[Any]"


def json_patch(target: Object, operations: Sequence[Object]) -> Object:
    """A JSON patch; neither argument is changed.

    Raises:
        BadRequestError: an operation is malformed.
        InvalidError: an operation does not apply to this object.
    """
    document = json_copy({"": target})
    for operation in operations:
        try:
            _OPERATIONS[operation["op"]](document, operation)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            if not isinstance(operation, dict) or operation.get("op") not in _OPERATIONS or "path" not in operation:
                raise statuses.bad_request(f"not an operation of a JSON patch: {operation}") from error
            message = f"the server rejected our request due to an error in our request: {operation} does not apply"
            raise statuses.failure(422, "Invalid", message) from error
    patched: Object = document[""]
    return patched


def _locate(document: _Container, pointer: str) -> tuple[Any, Any]:
    """The container that a JSON pointer leads into, and the name or index in it."""
    if pointer and not pointer.startswith("/"):
        raise ValueError(pointer)
    container: Any = document
    # The document is kept under the name "", so that the empty pointer, its root, leads into a container as well.
    *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")]
    for part in parents:
        container = container[_index(container, part)]
    return container, last if last == "-" else _index(container, last)


def _index(container: Any, part: str) -> str | int:
    if not isinstance(container, list):
        return part
    if not part.isdecimal():
        raise IndexError(part)
    return int(part)


def _read(document: _Container, pointer: str) -> Any:
    container, name = _locate(document, pointer)
    return json_copy(container[name])


def _insert(document: _Container, pointer: str, value: Any) -> None:
    container, name = _locate(document, pointer)
    if not isinstance(container, list):
        container[name] = value
        return
    position = len(container) if name == "-" else name
    if not 0 <= position <= len(container):
        raise IndexError(pointer)
    container.insert(position, value)


def _delete(document: _Container, pointer: str) -> None:
    container, name = _locate(document, pointer)
    del container[name]


def _replace(document: _Container, operation: Object) -> None:
    container, name = _locate(document, operation["path"])
    if isinstance(container, dict) and name not in container:
        raise KeyError(name)
    container[name] = operation["value"]


def _move(document: _Container, operation: Object) -> None:
    value = _read(document, operation["from"])
    _delete(document, operation["from"])
    _insert(document, operation["path"], value)


def _test(document: _Container, operation: Object) -> None:
    if _read(document, operation["path"]) != operation["value"]:
        raise ValueError(operation["path"])


_OPERATIONS: dict[str, Callable[[_Container, Object], None]] = {
    "add": lambda document, operation: _insert(document, operation["path"], operation["value"]),
    "remove": lambda document, operation: _delete(document, operation["path"]),
    "replace": _replace,
    "move": _move,
    "copy": lambda document, operation: _insert(document, operation["path"], _read(document, operation["from"])),
    "test": _test,
}
