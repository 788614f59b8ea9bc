"""Bounds of what people write: every text, list and map of our schemas has one.

They are far above what trainings need, and low enough that reading, checking and building an object takes a time that
is known (SECURITY.md). The API server enforces them as part of the CustomResourceDefinitions, and so does whatever
reads an object strictly. Objects that were stored under older definitions meet them when they are built.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trainer.api import patterns
from trainer.kube.quantity import LONGEST_QUANTITY

JsonSchema = dict[str, Any]

MOST_WORDS: Final = 4096
"""Words of a command and of its arguments; trainings of large models are known for hundreds of them."""
LONGEST_WORD: Final = 128 * 1024
"""Characters of such a word, and of a variable: with more Linux starts no program (MAX_ARG_STRLEN).

It counts bytes, and one of zero behind them, which `trainer.api.container` checks."""
_WORDS: Final = ("command", "args")
_MOST_CONTAINERS: Final = 64
"""Limit of the containers of a pod: a runtime of 1.5 MiB could have 40,000, the most costly entries of all."""
_CONTAINERS: Final = ("containers", "initContainers")
_MOST_ITEMS: Final = 1024
"""Limit of the items of all other lists."""
_MOST_ENTRIES: Final = 1024
"""Limit of the entries of maps such as labels and annotations."""
_MOST_RESOURCES: Final = 128
"""Limit of the entries of maps from resources to amounts."""
_LONGEST_TEXT: Final = 4096
"""Characters of names, paths and the like; a path is no longer in Linux (PATH_MAX)."""
_LONGEST_ENTRY: Final = 256 * 1024
"""Characters of a value in a map: what all annotations of an object may have together."""


def bounded(schema: Mapping[str, Any], name: str = "") -> JsonSchema:
    """A structural schema in which every text, list and map has a bound; those that it has stay.

    Args:
        schema: may hold references, which are left alone.
        name: of the field. Defaults to none, as for the schema of an object.
    """
    result = dict(schema)
    if result.get("x-kubernetes-int-or-string"):
        _bound_amount(result)
    match result.get("type"):
        case "string" if "enum" not in result:
            result.setdefault("maxLength", LONGEST_WORD if name == "value" else _LONGEST_TEXT)
        case "array":
            result.setdefault("maxItems", _most_items(name))
    if isinstance(result.get("items"), dict):
        result["items"] = bounded(result["items"], "value" if name in _WORDS else "")
    if isinstance(result.get("additionalProperties"), dict):
        result["additionalProperties"] = values = _bounded_values(result["additionalProperties"])
        result.setdefault("maxProperties", _MOST_RESOURCES if _is_amount(values) else _MOST_ENTRIES)
    if "properties" in result:
        result["properties"] = {field: bounded(child, field) for field, child in result["properties"].items()}
    return result


def bounds_of(schema: Mapping[str, Any]) -> JsonSchema:
    """The bounds of a structural schema and nothing else: for objects that were stored before there were any.

    Amounts are left out, whose reader has bounds of its own.
    """
    match schema.get("type"):
        case "string" if "maxLength" in schema:
            return {"type": "string", "maxLength": schema["maxLength"]}
        case "array":
            return {"type": "array", "maxItems": schema["maxItems"], "items": bounds_of(schema["items"])}
        case "object":
            return _bounds_of_object(schema)
    return {}


def _bounds_of_object(schema: Mapping[str, Any]) -> JsonSchema:
    result: JsonSchema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    if "properties" in schema:
        result["properties"] = {field: bounds_of(child) for field, child in schema["properties"].items()}
    if isinstance(schema.get("additionalProperties"), dict):
        result["additionalProperties"] = bounds_of(schema["additionalProperties"])
        result["maxProperties"] = schema["maxProperties"]
    return result


def _most_items(name: str) -> int:
    if name in _CONTAINERS:
        return _MOST_CONTAINERS
    return MOST_WORDS if name in _WORDS else _MOST_ITEMS


def _bounded_values(schema: Mapping[str, Any]) -> JsonSchema:
    is_text = schema.get("type") == "string"
    return bounded({"maxLength": _LONGEST_ENTRY, **schema} if is_text else schema)


def _bound_amount(schema: JsonSchema) -> None:
    """Numbers of processes and the like are as short as amounts; an environment variable may be a number as well."""
    if schema.get("pattern") == patterns.ANY_QUANTITY:
        schema["pattern"] = patterns.QUANTITY
    schema.setdefault("maxLength", LONGEST_QUANTITY if "pattern" in schema else LONGEST_WORD)


def _is_amount(schema: Mapping[str, Any]) -> bool:
    return schema.get("pattern") == patterns.QUANTITY
