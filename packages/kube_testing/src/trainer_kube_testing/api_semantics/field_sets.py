"""Field sets: which fields of an object somebody owns, as paths and in the FieldsV1 format.

A path is a tuple of elements in the notation of FieldsV1: `f:name` for a field or map key, `k:{"name":"x"}` for an item
of a map list, `v:"x"` for a value in a set, `i:0` for an index. Source: Kubernetes API reference, ManagedFieldsEntry.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from trainer.kube.objects import Object

Path: TypeAlias = tuple[str, ...]
FieldSet: TypeAlias = frozenset[Path]

EMPTY: Final[FieldSet] = frozenset()
_SELF: Final = "."


def parse(fields: Mapping[str, Any]) -> FieldSet:
    """Read FieldsV1; what is not in its format is skipped."""
    return frozenset(_paths(fields, ()))


def render(paths: FieldSet) -> Object:
    """Write FieldsV1."""
    fields: Object = {}
    for path in sorted(paths):
        node = fields
        for element in path:
            node = node.setdefault(element, {})
        node[_SELF] = {}
    _drop_leaf_marks(fields)
    return fields


def field(name: str) -> str:
    """The element of a field or map key."""
    return f"f:{name}"


def key(values: Mapping[str, Any]) -> str:
    """The element of a map list's item."""
    return f"k:{_json(values)}"


def value(item: object) -> str:
    """The element of a set's item."""
    return f"v:{_json(item)}"


def index(position: int) -> str:
    """The element of an item that has nothing but its position."""
    return f"i:{position}"


def ordered(paths: Iterable[Path]) -> list[Path]:
    """The paths as the real server lists them: at every level first those that end there, then what is below."""
    nested: dict[str, list[Path]] = {}
    for path in paths:
        nested.setdefault(path[0], []).append(path[1:])
    elements = sorted(nested, key=_rank)
    found: list[Path] = [(element,) for element in elements if () in nested[element]]
    for element in elements:
        found += [(element, *rest) for rest in ordered(rest for rest in nested[element] if rest)]
    return found


def display(path: Path) -> str:
    """A path as error messages show it: `.spec.parts[name="p"].weight`."""
    return "".join(map(_display_element, path))


def below(paths: Iterable[Path], element: str) -> FieldSet:
    """The rest of all paths that start with an element and go on."""
    return frozenset(path[1:] for path in paths if len(path) > 1 and path[0] == element)


def _paths(fields: Mapping[str, Any], prefix: Path) -> Iterator[Path]:
    for element, nested in fields.items():
        if element == _SELF:
            if prefix:
                yield prefix
        elif isinstance(nested, dict) and element[:2] in ("f:", "k:", "v:", "i:"):
            path = (*prefix, element)
            if nested:
                yield from _paths(nested, path)
            else:
                yield path


def _drop_leaf_marks(node: Object) -> None:
    for nested in node.values():
        if nested.keys() == {_SELF}:
            nested.clear()
        else:
            _drop_leaf_marks(nested)


def _rank(element: str) -> tuple[int, Any]:
    """Fields come before keys, values and positions; numbers compare as such."""
    kind, _, text = element.partition(":")
    return "fkvi".index(kind), int(text) if kind == "i" else text


def _display_element(element: str) -> str:
    kind, _, text = element.partition(":")
    if kind == "f":
        return f".{text}"
    if kind == "k":
        pairs = json.loads(text)
        return f"[{','.join(f'{name}={_json(entry)}' for name, entry in sorted(pairs.items()))}]"
    return f"[={text}]" if kind == "v" else f"[{text}]"


def _json(item: object) -> str:
    return json.dumps(item, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
