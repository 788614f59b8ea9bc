"""A small server-side apply for the fake: fields are owned by managers and go when nobody wants them.

Unlike the real one it knows no schemas, so lists are single values, except for those of the metadata and status that
controllers share: conditions merge by type, owner references by uid, finalizers as a set.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from trainer.kube.testing import statuses

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.kube.objects import Object


class Item(NamedTuple):
    """A step from a list to one of its items: the one whose key has this value, or in a set the value itself."""

    key: str
    value: str


Path: TypeAlias = tuple[str | Item, ...]
Manager: TypeAlias = tuple[str, str]
"""Field manager and subresource, which are distinct owners together."""
Ownership: TypeAlias = dict[Manager, set[Path]]

_KEYS = {"conditions": "type", "ownerReferences": "uid"}
_SETS = {"finalizers"}
_IDENTITY: set[Path] = {("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace")}


def apply_fields(target: Object, applied: Object, manager: Manager, ownership: Ownership, *, force: bool) -> list[str]:
    """Make the fields of `applied` those of `manager`, changing `target` and `ownership`.

    Returns:
        Conflicting fields with their owners; then nothing is changed.
    """
    wanted = dict(_leaves(applied))
    conflicts = {
        path: other
        for other, owned in ownership.items()
        for path in owned & wanted.keys()
        if other != manager and path not in _IDENTITY and wanted[path] not in ({}, _value(target, path))
    }
    if conflicts and not force:
        return [f"{_text(path)} (owned by {other[0]})" for path, other in conflicts.items()]
    for path, other in conflicts.items():
        ownership[other].discard(path)
    # Sorted, since a set of texts has another order in each process; keys last, since the rest is found by them.
    for path in sorted(ownership.get(manager, set()) - wanted.keys(), key=lambda path: (_is_key(path), _text(path))):
        if not any(path in owned for other, owned in ownership.items() if other != manager):
            _remove(target, path)
    for path, value in wanted.items():
        _set(target, path, value)
    ownership[manager] = set(wanted)
    return []


def _leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    name = path[-1] if path else ""
    if isinstance(value, dict) and value:
        for field, item in value.items():
            yield from _leaves(item, (*path, field))
    elif isinstance(value, list) and value and name in _KEYS:
        key = _KEYS[str(name)]
        for item in value:
            if not isinstance(item, dict) or key not in item:
                raise statuses.bad_request(f"an item of {_text(path)} lacks {key}, by which the items merge")
            yield from _leaves(item, (*path, Item(key, item[key])))
    elif isinstance(value, list) and value and name in _SETS:
        for item in value:
            yield (*path, Item("", item)), item
    else:
        yield path, value


def _is_key(path: Path) -> bool:
    return len(path) > 1 and isinstance(path[-2], Item) and path[-2].key == path[-1]


def _text(path: Path) -> str:
    return "".join(f"[{step.value}]" if isinstance(step, Item) else f".{step}" for step in path)


def _child(value: Any, step: str | Item) -> Any:
    if isinstance(step, str):
        return value.get(step) if isinstance(value, dict) else None
    items = value if isinstance(value, list) else []
    return next((item for item in items if (item.get(step.key) if step.key else item) == step.value), None)


def _value(target: Any, path: Path) -> Any:
    for step in path:
        target = _child(target, step)
    return target


def _set(target: Any, path: Path, value: Any) -> None:
    for step, following in itertools.pairwise(path):
        child = _child(target, step)
        if not isinstance(child, dict | list):
            child = _add(target, step, following)
        target = child
    last = path[-1]
    if isinstance(last, Item):
        if value not in target:
            target.append(value)
    elif value != {} or not isinstance(target.get(last), dict):
        target[last] = value


def _add(target: Any, step: str | Item, following: str | Item) -> Any:
    """The new list, item or map that the path goes through."""
    child: Any = [] if isinstance(following, Item) else {}
    if isinstance(step, Item):
        child[step.key] = step.value
        target.append(child)
    else:
        target[step] = child
    return child


def _remove(target: Any, path: Path) -> None:
    step, rest = path[0], path[1:]
    child = _child(target, step)
    if child is None:
        return
    if rest:
        _remove(child, rest)
        if child:
            return
    if isinstance(step, Item):
        target.remove(child)
    else:
        del target[step]
