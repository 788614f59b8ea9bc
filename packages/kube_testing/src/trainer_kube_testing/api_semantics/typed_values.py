"""Typed values: taking objects apart, comparing and merging them as their type says (structured merge and diff).

Sources: KEP-555; Kubernetes documentation, "Server-Side Apply". None of these functions changes its arguments.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from trainer.kube.field_errors import show
from trainer.kube.merge_patch import writable_copy
from trainer_kube_testing.api_semantics import field_sets
from trainer_kube_testing.api_semantics.field_sets import FieldSet, Path
from trainer_kube_testing.api_semantics.json_values import ABSENT, merge_order, same
from trainer_kube_testing.api_semantics.value_types import UNTYPED, ListType, Typing

_EXPECTED: Final[dict[str, tuple[type | tuple[type, ...], str]]] = {
    "string": (str, "string"),
    "integer": ((int, float), "numeric (int or float)"),
    "number": ((int, float), "numeric (int or float)"),
    "boolean": (bool, "boolean"),
    "array": (list, "list"),
    "object": (dict, "map"),
}


class TypedValueError(ValueError):
    """A value does not fit its type; the message names every field."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__(problems[0] if len(problems) == 1 else "\n  ".join(["errors:", *problems]))


@dataclass(frozen=True, slots=True)
class Comparison:
    """The paths of fields that differ between two objects."""

    added: FieldSet
    modified: FieldSet
    removed: FieldSet


def fields_of(value: Any, typing: Typing) -> FieldSet:
    """The fields that a configuration states: leaves, atomic lists and maps, and items of lists and maps.

    Raises:
        TypedValueError: it has fields that the type does not have, values of the wrong type, or ambiguous list items.
    """
    collector = _Collector()
    collector.visit(value, typing, ())
    if collector.problems:
        raise TypedValueError(collector.problems)
    return frozenset(collector.paths)


def compare(old: Any, new: Any, typing: Typing) -> Comparison:
    """The fields that are different; a container counts as added or removed only when it was not there at all."""
    comparison = _Comparison()
    comparison.visit(old, new, typing, ())
    return Comparison(frozenset(comparison.added), frozenset(comparison.modified), frozenset(comparison.removed))


def merge(live: Any, applied: Any, typing: Typing) -> Any:
    """The live value with the applied configuration in it; both have to fit the type."""
    if _splits_map(live, typing) and _splits_map(applied, typing):
        merged = {name: writable_copy(child) for name, child in live.items() if name not in applied}
        for name, child in applied.items():
            merged[name] = merge(live.get(name), child, _child(typing, name))
        return {name: merged[name] for name in (*live, *(name for name in applied if name not in live))}
    if _splits_list(live, typing) and _splits_list(applied, typing):
        live_items, applied_items = dict(_elements(live, typing)), dict(_elements(applied, typing))
        order = merge_order(list(live_items), list(applied_items))
        return [
            merge(live_items.get(element), applied_items[element], typing.item)
            if element in applied_items
            else writable_copy(live_items[element])
            for element in order
        ]
    return writable_copy(applied)


def remove(value: Any, paths: FieldSet, typing: Typing) -> Any:
    """The value without some fields and all that is below them; what becomes empty by that becomes null."""
    if not paths:
        return writable_copy(value)
    doomed = {path[0] for path in paths if len(path) == 1}
    if isinstance(value, dict):
        kept: dict[str, Any] = {}
        for name, child in value.items():
            element = field_sets.field(name)
            if element in doomed:
                continue
            smaller = remove(child, field_sets.below(paths, element), _child(typing, name))
            # A null is dropped on the way to the storage, but whoever owns the container itself goes on owning it.
            kept[name] = None if child and smaller in ({}, []) else smaller
        return kept
    if isinstance(value, list):
        return [
            remove(item, field_sets.below(paths, element), typing.item)
            for element, item in _elements(value, typing)
            if element not in doomed
        ]
    return value


def with_named_parents(paths: FieldSet, typing: Typing) -> FieldSet:
    """The paths and, for each, the declared fields that lead to it (map keys and list items do not count)."""
    found = set(paths)
    for path in paths:
        current = typing
        for position, element in enumerate(path[:-1], start=1):
            kind, _, name = element.partition(":")
            if kind == "f" and current.declares(name):
                found.add(path[:position])
            current = _child(current, name) if kind == "f" else current.item
    return frozenset(found)


@dataclass(slots=True)
class _Collector:
    paths: set[Path] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)

    def visit(self, value: Any, typing: Typing, path: Path) -> None:
        if value is not None and not self._fits(value, typing, path):
            return
        if _splits_map(value, typing):
            self._visit_map(value, typing, path)
        elif _splits_list(value, typing):
            self._visit_list(value, typing, path)
        elif path:
            self.paths.add(path)

    def _fits(self, value: Any, typing: Typing, path: Path) -> bool:
        if not typing.json_type:
            return True
        python_type, expected = _EXPECTED[typing.json_type]
        if isinstance(value, python_type) and (isinstance(value, bool) is (expected == "boolean")):
            return True
        self.problems.append(f"{field_sets.display(path)}: expected {expected}, got {show(value)}")
        return False

    def _visit_map(self, value: dict[str, Any], typing: Typing, path: Path) -> None:
        for name, child in value.items():
            child_path = (*path, field_sets.field(name))
            child_type = typing.field(name)
            if child_type is None:
                self.problems.append(f"{field_sets.display(child_path)}: field not declared in schema")
                continue
            self.visit(child, child_type, child_path)
            if child is None or child == {} or not typing.declares(name):
                self.paths.add(child_path)

    def _visit_list(self, value: list[Any], typing: Typing, path: Path) -> None:
        seen: set[str] = set()
        for position, item in enumerate(value):
            problem = _item_problem(item, typing)
            element = None if problem else _element(item, position, typing)
            if element is None:
                self.problems.append(f"{field_sets.display(path)}: element {position}: {problem}")
                continue
            child_path = (*path, element)
            if element in seen:
                shown = field_sets.display((element,))
                self.problems.append(f"{field_sets.display(path)}: duplicate entries for key {shown}")
                continue
            seen.add(element)
            self.visit(item, typing.item, child_path)
            self.paths.add(child_path)


@dataclass(slots=True)
class _Comparison:
    added: set[Path] = field(default_factory=set)
    modified: set[Path] = field(default_factory=set)
    removed: set[Path] = field(default_factory=set)

    def visit(self, old: Any, new: Any, typing: Typing, path: Path) -> None:
        if old is not ABSENT and new is not ABSENT and same(old, new):
            return
        pairs: Iterator[tuple[str, Any, Any, Typing]] | None = None
        if _both(old, new, dict) and not typing.is_atomic_map:
            pairs = _map_pairs(old, new, typing)
        elif _both(old, new, list) and typing.list_type is not ListType.ATOMIC:
            pairs = _list_pairs(old, new, typing)
        if pairs is None:
            self._leaf(old, new, path)
            return
        for element, old_child, new_child, child_type in pairs:
            self.visit(old_child, new_child, child_type, (*path, element))
        if path and (old is ABSENT or new is ABSENT):
            self._leaf(old, new, path)

    def _leaf(self, old: Any, new: Any, path: Path) -> None:
        changed = self.added if old is ABSENT else self.removed if new is ABSENT else self.modified
        changed.add(path)


def _both(old: Any, new: Any, kind: type) -> bool:
    """Whether the two are containers of a kind, one of them possibly missing, and not both empty."""
    present = [side for side in (old, new) if side is not ABSENT and side is not None]
    return bool(present) and all(isinstance(side, kind) for side in present) and any(present)


def _map_pairs(old: Any, new: Any, typing: Typing) -> Iterator[tuple[str, Any, Any, Typing]]:
    old_fields = old if isinstance(old, dict) else {}
    new_fields = new if isinstance(new, dict) else {}
    for name in {**old_fields, **new_fields}:
        child_type = _child(typing, name)
        yield field_sets.field(name), old_fields.get(name, ABSENT), new_fields.get(name, ABSENT), child_type


def _list_pairs(old: Any, new: Any, typing: Typing) -> Iterator[tuple[str, Any, Any, Typing]]:
    old_items, new_items = _grouped(old, typing), _grouped(new, typing)
    for element in {**old_items, **new_items}:
        old_group, new_group = old_items.get(element, []), new_items.get(element, [])
        if max(len(old_group), len(new_group)) > 1:
            # Items that share a key are one value together.
            yield element, old_group or ABSENT, new_group or ABSENT, UNTYPED
        else:
            old_item, new_item = (group[0] if group else ABSENT for group in (old_group, new_group))
            yield element, old_item, new_item, typing.item


def _grouped(items: Any, typing: Typing) -> dict[str, list[Any]]:
    groups: dict[str, list[Any]] = {}
    for position, item in enumerate(items if isinstance(items, list) else ()):
        element = _element(item, position, typing) or field_sets.index(position)
        groups.setdefault(element, []).append(item)
    return groups


def _elements(items: list[Any], typing: Typing) -> list[tuple[str, Any]]:
    return [
        (_element(item, position, typing) or field_sets.index(position), item) for position, item in enumerate(items)
    ]


def _element(item: Any, position: int, typing: Typing) -> str | None:
    """The path element of a list item, from the keys that it has; None when it has none."""
    if typing.list_type is ListType.SET:
        return field_sets.value(item)
    if typing.list_type is ListType.ATOMIC or not isinstance(item, dict):
        return field_sets.index(position)
    keys = {}
    for name in typing.list_map_keys:
        entry = item.get(name, typing.key_default(name))
        if entry is not None:
            keys[name] = entry
    return field_sets.key(keys) if keys else None


def _item_problem(item: Any, typing: Typing) -> str:
    """Why an item of a list has no key; "" if it has one."""
    if typing.list_type is ListType.ATOMIC:
        return ""
    if typing.list_type is ListType.MAP:
        if item is None:
            return "associative list with keys may not have a null element"
        if not isinstance(item, dict):
            return "associative list with keys may not have non-map elements"
        if _element(item, 0, typing) is None:
            names = " ".join(f'"{name}"' for name in typing.list_map_keys)
            return (
                f"associative list with keys has an element that omits all key fields [{names}] (and doesn't have "
                "default values for any key fields)"
            )
        return ""
    if item is None:
        return "associative list without keys has an element that's an explicit null"
    if isinstance(item, dict):
        return "associative list without keys has an element that's a map type"
    if isinstance(item, list):
        return "not supported: associative list with lists as elements"
    return ""


def _splits_map(value: Any, typing: Typing) -> bool:
    return isinstance(value, dict) and not typing.is_atomic_map


def _splits_list(value: Any, typing: Typing) -> bool:
    return isinstance(value, list) and typing.list_type is not ListType.ATOMIC


def _child(typing: Typing, name: str) -> Typing:
    return typing.field(name) or UNTYPED
