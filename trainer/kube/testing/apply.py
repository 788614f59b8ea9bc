"""A small server-side apply for `FakeClient`: fields are owned by managers and go when nobody wants them.

Unlike the real one it knows no schemas: lists are single values, except `conditions`, whose items merge by type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.kube.objects import Object

Path: TypeAlias = tuple[str, ...]
Manager: TypeAlias = tuple[str, str]
"""Field manager and subresource, which are distinct owners together."""
Ownership: TypeAlias = dict[Manager, set[Path]]

_IDENTITY = {("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace")}


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
        return [f".{'.'.join(path)} (owned by {other[0]})" for path, other in conflicts.items()]
    for path, other in conflicts.items():
        ownership[other].discard(path)
    # The type of a condition goes last, since the rest is found by it.
    for path in sorted(ownership.get(manager, set()) - wanted.keys(), key=lambda path: path[-1] == "type"):
        if not any(path in owned for other, owned in ownership.items() if other != manager):
            _remove(target, path)
    for path, value in wanted.items():
        _set(target, path, value)
    ownership[manager] = set(wanted)
    return []


def _leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from _leaves(item, (*path, name))
    elif _is_keyed(value, path):
        for item in value:
            yield from _leaves(item, (*path, item["type"]))
    else:
        yield path, value


def _is_keyed(value: Any, path: Path) -> bool:
    return isinstance(value, list) and bool(value) and path[-1:] == ("conditions",)


def _child(value: Any, name: str) -> Any:
    if isinstance(value, list):
        return next((item for item in value if item.get("type") == name), None)
    return value.get(name) if isinstance(value, dict) else None


def _value(target: Any, path: Path) -> Any:
    for name in path:
        target = _child(target, name)
    return target


def _set(target: Any, path: Path, value: Any) -> None:
    for name in path[:-1]:
        child = _child(target, name)
        if not isinstance(child, dict | list):
            child = _new_child(target, name)
        target = child
    if value != {} or not isinstance(target.get(path[-1]), dict):
        target[path[-1]] = value


def _new_child(target: Any, name: str) -> Any:
    if isinstance(target, list):
        item = {"type": name}
        target.append(item)
        return item
    target[name] = [] if name == "conditions" else {}
    return target[name]


def _remove(target: Any, path: Path) -> None:
    name, rest = path[0], path[1:]
    child = _child(target, name)
    if child is None:
        return
    if rest:
        _remove(child, rest)
        if child:
            return
    if isinstance(target, list):
        target.remove(child)
    else:
        del target[name]
