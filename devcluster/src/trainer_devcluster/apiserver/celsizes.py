"""Sizes: how large what a schema describes can be, as far as its keywords and the largest request bound it.

Source: the API server's estimates for validation rules. A size is that of CEL: characters of a text, items of a list,
entries of a map. The API server holds its estimates stable, so ours are the same where they are odd, too: numbers,
booleans and objects have no size, and neither have the keys of maps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trainer_devcluster.apiserver.cel.call_costs import PATH_OF_ITEMS, PATH_OF_KEYS, PATH_OF_VALUES
from trainer_devcluster.apiserver.celtypes import escape, with_root_properties

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer_devcluster.apiserver.cel.call_costs import Path

    Schema = Mapping[str, Any]

MAX_REQUEST_BYTES: Final = 3 * 1024 * 1024
_LONGEST_TEXT: Final = MAX_REQUEST_BYTES - 2
"""Characters between the quotes of a request that is nothing else."""
_BYTES_OF_CHARACTER: Final = 4
_LONGEST: Final = {"duration": 32, "date": 12, "date-time": 32}
"""Bytes, quotes included, of the longest texts in these formats."""
_SHORTEST: Final = {"duration": 3, "date": 12, "date-time": 21}
_SMALLEST: Final = {"array": 2, "boolean": 4, "integer": 1, "number": 1, "string": 2}
"""Bytes of the shortest JSON of each type."""
_KEY: Schema = {}


def size_at(schema: Schema, path: Path, *, is_resource: bool = False) -> int | None:
    """The largest size of what a path leads to; None when it leads out of the schema.

    Args:
        schema: what the variable at the start of the path is.
        path: as the estimate of costs makes it. The first step counts for nothing, whatever variable or part it names.
        is_resource: whether the schema describes a whole object.
    """
    found: Schema | None = schema
    for position, step in enumerate(path[1:]):
        if found is not None:
            found = _below(found, step, is_resource=is_resource and position == 0)
    return None if found is None else _largest(found)


def smallest_json(schema: Schema, *, is_resource: bool = False) -> int:
    """Bytes of the shortest JSON that a schema accepts.

    Args:
        schema: a node that expressions can reach.
        is_resource: whether it describes a whole object.
    """
    if schema.get("x-kubernetes-int-or-string"):
        return 1
    kind = schema.get("type")
    if kind != "object":
        return _SHORTEST.get(_format(schema), _SMALLEST.get(str(kind), 0))
    if _values(schema) is not None:
        return 2
    if is_resource or schema.get("x-kubernetes-embedded-resource"):
        schema = with_root_properties(schema)
    properties = schema.get("properties") or {}
    required = (name for name in dict.fromkeys(schema.get("required") or ()) if name in properties)
    # A pair of quotes, a colon and a comma come with every field; defaults need not be sent.
    return 2 + sum(
        len(name.encode()) + smallest_json(properties[name]) + 4
        for name in required
        if properties[name].get("default") is None and _is_reachable(properties[name])
    )


def _below(schema: Schema, step: str, *, is_resource: bool) -> Schema | None:
    if schema.get("x-kubernetes-int-or-string"):
        return None
    items, values = _items(schema), _values(schema)
    if step in (PATH_OF_ITEMS, PATH_OF_VALUES):
        return items if values is None else values
    if step == PATH_OF_KEYS:
        return None if values is None else _KEY
    if schema.get("type") != "object" or values is not None:
        return None
    if is_resource or schema.get("x-kubernetes-embedded-resource"):
        schema = with_root_properties(schema)
    properties = schema.get("properties") or {}
    found = next((child for name, child in properties.items() if escape(name) == step), None)
    return found if found is not None and _is_reachable(found) else None


def _items(schema: Schema) -> Schema | None:
    items = schema.get("items")
    return items if schema.get("type") == "array" and isinstance(items, dict) else None


def _values(schema: Schema) -> Schema | None:
    values = schema.get("additionalProperties")
    return values if schema.get("type") == "object" and isinstance(values, dict) else None


def _is_reachable(schema: Schema) -> bool:
    """Whether there is a type for what is described."""
    if schema.get("x-kubernetes-int-or-string"):
        return True
    if schema.get("type") == "array":
        items = _items(schema)
        return items is not None and _is_reachable(items)
    values = _values(schema)
    return _is_reachable(values) if values is not None else schema.get("type") in {*_SMALLEST, "object"}


def _largest(schema: Schema) -> int:
    if schema.get("x-kubernetes-int-or-string"):
        return _bounded(schema, "maxLength", _BYTES_OF_CHARACTER, _LONGEST_TEXT)
    if schema.get("type") == "string":
        return _longest_text(schema)
    items, values = _items(schema), _values(schema)
    if items is not None:
        # Brackets around the items, a comma after each.
        return _bounded(schema, "maxItems", 1, (MAX_REQUEST_BYTES - 2) // (smallest_json(items) + 1))
    if values is not None:
        # Braces around the entries; quotes, colon, comma and two bytes for the key of each.
        return _bounded(schema, "maxProperties", 1, (MAX_REQUEST_BYTES - 2) // (smallest_json(values) + 6))
    return 0


def _longest_text(schema: Schema) -> int:
    text_format = _format(schema)
    if text_format in _LONGEST:
        return _LONGEST[text_format]
    if text_format == "byte":
        return _bounded(schema, "maxLength", 1, _LONGEST_TEXT)
    choices = [len(choice.encode()) for choice in schema.get("enum") or () if isinstance(choice, str)]
    return _bounded(schema, "maxLength", _BYTES_OF_CHARACTER, max(choices, default=0) if choices else _LONGEST_TEXT)


def _format(schema: Schema) -> str:
    return str(schema.get("format") or "") if schema.get("type") == "string" else ""


def _bounded(schema: Schema, keyword: str, each: int, otherwise: int) -> int:
    bound = schema.get(keyword)
    return otherwise if bound is None else max(int(bound), 0) * each
