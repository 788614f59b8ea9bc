"""Structural schemas: the rules that every schema of a definition has to keep, so that objects can be pruned.

Source: Kubernetes documentation, "Specifying a structural schema"; texts are those of the API server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trainer.kube.field_errors import forbidden, invalid, required
from trainer_devcluster.apiserver.schema.formats import compile_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trainer.kube.field_errors import FieldError

    Schema = Mapping[str, Any]

INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
"""The only types that may stand inside `anyOf`."""
ROOT: Final = "must not be empty at the root"
_FIELD: Final = "must not be empty for specified object fields"
_ITEM: Final = "must not be empty for specified array items"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_OPEN: Final = "x-kubernetes-preserve-unknown-fields"
_NAMES: Final = frozenset({"name", "generateName"})
_FORBIDDEN_WHEN_NESTED: Final = {
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    "title": "must be empty to be structural",
    "type": "must be empty to be structural",
    "x-kubernetes-embedded-resource": "must be false to be structural",
    "x-kubernetes-int-or-string": "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    "x-kubernetes-preserve-unknown-fields": "must be false to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}


def check_structure(schema: Schema, path: str) -> list[FieldError]:
    """Why a schema is not structural, in the order of the texts; nothing when it is."""
    causes = [*_node(schema, path, ROOT), *_missing(schema, path)]
    return sorted(causes, key=str)


def combinations(schema: Schema, path: str) -> Iterator[tuple[str, str, Schema]]:
    """The schemas inside allOf, anyOf, oneOf and not: keyword, path, and schema of each."""
    for keyword in ("allOf", "anyOf", "oneOf"):
        entries = schema.get(keyword)
        for index, nested in enumerate(entries if isinstance(entries, list) else ()):
            if isinstance(nested, dict):
                yield keyword, f"{path}.{keyword}[{index}]", nested
    if isinstance(schema.get("not"), dict):
        yield "not", f"{path}.not", schema["not"]


def children(schema: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    """The schemas of fields, map values and items: path and schema of each."""
    for name, child in (schema.get("properties") or {}).items():
        if isinstance(child, dict):
            yield f"{path}.properties[{name}]", child
    for keyword in ("additionalProperties", "items"):
        if isinstance(schema.get(keyword), dict):
            yield f"{path}.{keyword}", schema[keyword]


def _node(schema: Schema, path: str, level: str) -> Iterator[FieldError]:
    yield from _type(schema, path, level)
    yield from _extensions(schema, path)
    yield from _metadata(schema, path, level)
    if schema.get("additionalProperties") and level == ROOT:
        yield forbidden(f"{path}.additionalProperties", "must not be used at the root")
    yield from _values(schema, path, free=_is_int_or_string(schema.get("anyOf")))
    for child_path, child in children(schema, path):
        yield from _node(child, child_path, _ITEM if child_path == f"{path}.items" else _FIELD)


def _type(schema: Schema, path: str, level: str) -> Iterator[FieldError]:
    declared = schema.get("type") or ""
    if declared == "array" and not isinstance(schema.get("items"), dict):
        yield required(f"{path}.items", "must be specified")
    if schema.get(_EMBEDDED) and declared != "object":
        detail = f"must be object if {_EMBEDDED} is true"
        yield invalid(f"{path}.type", declared, detail) if declared else required(f"{path}.type", detail)
    elif not declared and not schema.get("x-kubernetes-int-or-string") and not schema.get(_OPEN):
        yield required(f"{path}.type", level)
    if level == ROOT and declared not in ("", "object"):
        yield invalid(f"{path}.type", declared, "must be object at the root")


def _extensions(schema: Schema, path: str) -> Iterator[FieldError]:
    if schema.get("x-kubernetes-int-or-string"):
        if schema.get("type"):
            yield invalid(f"{path}.type", schema["type"], "must be empty if x-kubernetes-int-or-string is true")
        for keyword in (_OPEN, _EMBEDDED):
            if schema.get(keyword):
                yield invalid(f"{path}.{keyword}", True, "must be false if x-kubernetes-int-or-string is true")
    if not schema.get(_EMBEDDED):
        return
    if schema.get("additionalProperties"):
        yield forbidden(f"{path}.additionalProperties", f"must not be used if {_EMBEDDED} is set")
    if not schema.get(_OPEN) and not schema.get("properties"):
        detail = f"must not be empty if {_EMBEDDED} is true without {_OPEN}"
        yield required(f"{path}.properties", detail)


def _metadata(schema: Schema, path: str, level: str) -> Iterator[FieldError]:
    """Of what every object has, a schema may say only what its names look like."""
    properties = schema.get("properties") or {}
    is_resource = level == ROOT or schema.get(_EMBEDDED)
    for name in ("apiVersion", "kind"):
        if is_resource and name in properties and properties[name].get("type") != "string":
            yield invalid(f"{path}.properties[{name}].type", properties[name].get("type") or "", "must be string")
    metadata = properties.get("metadata")
    if metadata is None:
        return
    if is_resource and metadata.get("type") != "object":
        yield invalid(f"{path}.properties[metadata].type", metadata.get("type") or "", "must be object")
    said = {name for name, value in metadata.items() if value and name not in ("type", "default")}
    if level == ROOT and (said - {"properties"} or not set(metadata.get("properties") or ()) <= _NAMES):
        detail = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield forbidden(f"{path}.properties[metadata]", detail)


def _values(schema: Schema, path: str, *, free: bool) -> Iterator[FieldError]:
    """What is wrong with value validations; `free` lets the types of int-or-string stand in `anyOf`."""
    for keyword, nested_path, nested in combinations(schema, path):
        if keyword == "anyOf" and free:
            continue
        first = nested_path == f"{path}.allOf[0]"
        yield from _nested(nested, nested_path, free=first and _is_int_or_string(nested.get("anyOf")))
    if schema.get("pattern"):
        try:
            compile_pattern(schema["pattern"])
        except ValueError as error:
            yield invalid(f"{path}.pattern", schema["pattern"], str(error))


def _nested(schema: Schema, path: str, *, free: bool = False) -> Iterator[FieldError]:
    yield from _values(schema, path, free=free)
    for child_path, child in children(schema, path):
        if child_path != f"{path}.additionalProperties":
            yield from _nested(child, child_path)
    for keyword, detail in _FORBIDDEN_WHEN_NESTED.items():
        if schema.get(keyword) or (keyword in ("additionalProperties", "default") and keyword in schema):
            yield forbidden(f"{path}.{keyword}", detail)
    if "metadata" in (schema.get("properties") or {}):
        yield forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _missing(schema: Schema, path: str) -> Iterator[FieldError]:
    """Fields and items that only value validations know."""
    for _, nested_path, nested in combinations(schema, path):
        yield from _incomplete(nested, schema, nested_path, path)
    for child_path, child in children(schema, path):
        yield from _missing(child, child_path)


def _incomplete(nested: Schema, schema: Schema, nested_path: str, path: str) -> Iterator[FieldError]:
    for _, deeper_path, deeper in combinations(nested, nested_path):
        yield from _incomplete(deeper, schema, deeper_path, path)
    for name, child in (nested.get("properties") or {}).items():
        declared = (schema.get("properties") or {}).get(name)
        where = f"{nested_path}.properties[{name}]"
        if not isinstance(declared, dict):
            yield required(f"{path}.properties[{name}]", f"because it is defined in {where}")
        elif isinstance(child, dict):
            yield from _incomplete(child, declared, where, f"{path}.properties[{name}]")
    if isinstance(nested.get("items"), dict):
        if not isinstance(schema.get("items"), dict):
            yield required(f"{path}.items", f"because it is defined in {nested_path}.items")
        else:
            yield from _incomplete(nested["items"], schema["items"], f"{nested_path}.items", f"{path}.items")


def _is_int_or_string(alternatives: object) -> bool:
    return alternatives == INT_OR_STRING
