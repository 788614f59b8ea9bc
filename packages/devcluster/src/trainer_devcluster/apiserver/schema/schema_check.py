"""Checks of the schemas in definitions: whether they are structural, and whether the dev cluster supports them.

The mistakes that people make are reported in the words of the API server; it finds more than these.
Sources: Kubernetes documentation, "Specifying a structural schema" and "Validation rules".
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from trainer.kube.field_errors import FieldError, forbidden, invalid, not_supported, required
from trainer_devcluster.apiserver.objects.built_in_types import built_in_type
from trainer_devcluster.apiserver.objects.decoding import WrongTypeError, normalize
from trainer_devcluster.apiserver.schema.validation import UNSUPPORTED, validate_value
from trainer_devcluster.regular_expressions import check_pattern

Schema = Mapping[str, Any]

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
"""The only types that may stand inside `anyOf`."""
_OPEN: Final = "x-kubernetes-preserve-unknown-fields"
_RULES: Final = "x-kubernetes-validations"
_LIST_TYPE: Final = "x-kubernetes-list-type"
_LIST_TYPES: Final = ("atomic", "map", "set")
_MAP_KEYS: Final = "x-kubernetes-list-map-keys"
_UNSUPPORTED: Final = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_ROOT: Final = "must not be empty at the root"
_FIELD: Final = "must not be empty for specified object fields"
_ITEM: Final = "must not be empty for specified array items"
_FORBIDDEN_WHEN_NESTED: Final = {
    "additionalProperties": "undefined", "default": "undefined", "description": "empty", "nullable": "false",
    "title": "empty", "type": "empty", "x-kubernetes-int-or-string": "false", _MAP_KEYS: "empty",
    _LIST_TYPE: "undefined", "x-kubernetes-map-type": "undefined", _OPEN: "false", _RULES: "empty",
}  # fmt: skip
_STEP: Final = re.compile(r"\.([A-Za-z_]\w*)|\['((?:\\.|[^'\\])*)'\]")


def check_schema(schema: Schema, path: str) -> list[FieldError]:
    """What is wrong with a schema and everything below it; expressions are not compiled."""
    causes = list(_wrong_types(schema, path))
    if causes:
        return causes
    if schema.get("nullable"):
        causes.append(forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    if schema.get("type") not in (None, "", "object"):
        causes.append(invalid(f"{path}.type", schema["type"], "must be object at the root"))
    causes += _node(schema, path, _ROOT)
    return causes or list(_defaults(schema, path))


def field_names(field_path: str) -> Iterator[str]:
    """The names on a `fieldPath` such as `.spec['a-b']`."""
    for match in _STEP.finditer(field_path):
        yield match[1] or re.sub(r"\\(.)", r"\1", match[2])


def schema_at(field_path: str, schema: Schema) -> Schema | None:
    """The schema that a path such as `.spec['a-b']` leads to; None when it leads nowhere."""
    if _STEP.sub("", field_path) or not field_path:
        return None
    current: Any = schema
    for name in field_names(field_path):
        current = (current.get("properties") or {}).get(name, current.get("additionalProperties"))
        if not isinstance(current, dict):
            return None
    found: Schema = current
    return found


def _wrong_types(schema: Schema, path: str) -> Iterator[FieldError]:
    """What no schema is below `items` and `additionalProperties`, where a definition may hold any value."""
    typing = built_in_type("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    assert typing is not None
    for child_path, child in _children(schema, path):
        if not child_path.endswith("]"):
            try:
                versions = [{"schema": {"openAPIV3Schema": copy.deepcopy(child)}}]
                normalize({"spec": {"versions": versions}}, typing)
            except WrongTypeError as error:
                yield invalid(child_path, dict(child), str(error))
                continue
        yield from _wrong_types(child, child_path)


def _node(schema: Schema, path: str, level: str) -> Iterator[FieldError]:
    yield from _type(schema, path, level)
    yield from _keywords(schema, path)
    yield from _list(schema, path)
    yield from _combinations(schema, schema, path, path)
    for index, entry in enumerate(schema.get(_RULES) or ()):
        yield from _rule(entry, schema, f"{path}.{_RULES}[{index}]")
    for child_path, child in _children(schema, path):
        yield from _node(child, child_path, _ITEM if child_path == f"{path}.items" else _FIELD)


def _children(schema: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    for name, child in (schema.get("properties") or {}).items():
        yield f"{path}.properties[{name}]", child or {}
    for keyword in ("additionalProperties", "items"):
        if isinstance(schema.get(keyword), dict):
            yield f"{path}.{keyword}", schema[keyword]


def _type(schema: Schema, path: str, level: str) -> Iterator[FieldError]:
    declared = schema.get("type") or ""
    if declared and declared not in _TYPES:
        yield not_supported(f"{path}.type", declared, _TYPES)
    elif declared and schema.get("x-kubernetes-int-or-string"):
        yield invalid(f"{path}.type", declared, "must be empty if x-kubernetes-int-or-string is true")
    elif not declared and not schema.get("x-kubernetes-int-or-string") and not schema.get(_OPEN):
        yield required(f"{path}.type", level)
    if declared == "array" and not isinstance(schema.get("items"), dict):
        yield required(f"{path}.items", "must be specified")


def _keywords(schema: Schema, path: str) -> Iterator[FieldError]:
    for keyword in _UNSUPPORTED:
        if schema.get(keyword):
            yield forbidden(f"{path}.{keyword}", f"{keyword} is not supported")
    if schema.get(_EMBEDDED):
        yield forbidden(f"{path}.{_EMBEDDED}", "the dev cluster does not check embedded objects: use a real cluster")
    if schema.get("format") in UNSUPPORTED:
        detail = f"the dev cluster does not check texts of format {schema['format']}: use a pattern, or a real cluster"
        yield forbidden(f"{path}.format", detail)
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{path}.uniqueItems", detail)
    additional = schema.get("additionalProperties")
    if additional is False:
        yield forbidden(f"{path}.additionalProperties", "additionalProperties cannot be set to false")
    if schema.get("properties") and isinstance(additional, dict):
        detail = "additionalProperties and properties are mutual exclusive"
        yield forbidden(f"{path}.additionalProperties", detail)


def _defaults(schema: Schema, path: str) -> Iterator[FieldError]:
    """What is wrong with the defaults; a schema that is wrong itself cannot check them."""
    if schema.get("default") is not None:
        yield from validate_value(schema["default"], dict(schema), prefix=f"{path}.default")
    for child_path, child in _children(schema, path):
        yield from _defaults(child, child_path)


def _list(schema: Schema, path: str) -> Iterator[FieldError]:
    list_type, keys, items = schema.get(_LIST_TYPE), schema.get(_MAP_KEYS) or [], schema.get("items")
    if list_type is not None and list_type not in _LIST_TYPES:
        yield not_supported(f"{path}.{_LIST_TYPE}", list_type, _LIST_TYPES)
    if list_type is not None and schema.get("type") != "array":
        yield invalid(f"{path}.type", schema.get("type"), f"must be array if {_LIST_TYPE} is specified")
    if list_type == "map" and not keys:
        yield required(f"{path}.{_MAP_KEYS}", f"must not be empty if {_LIST_TYPE} is map")
    for key in keys if isinstance(items, dict) else ():
        declared = ((items or {}).get("properties") or {}).get(key)
        if declared is None:
            yield invalid(f"{path}.{_MAP_KEYS}", keys, "entries must all be names of item properties")
        elif key not in ((items or {}).get("required") or ()) and declared.get("default") is None:
            detail = f"this property is in {_MAP_KEYS}, so it must have a default or be a required property"
            yield required(f"{path}.items.properties[{key}].default", detail)


def _combinations(nested: Schema, schema: Schema, nested_path: str, path: str) -> Iterator[FieldError]:
    """What is wrong inside of allOf, anyOf, oneOf and not, which may only restrict what `schema` declares."""
    if nested.get("pattern"):
        try:
            check_pattern(nested["pattern"])
        except ValueError as error:
            yield invalid(f"{nested_path}.pattern", nested["pattern"], str(error))
    for keyword in ("allOf", "anyOf", "oneOf", "not"):
        entries = nested.get(keyword) or ()
        if entries == _INT_OR_STRING:
            continue
        single = isinstance(entries, dict)
        for index, entry in enumerate([entries] if single else entries):
            yield from _restriction(entry, schema, f"{nested_path}.{keyword}{'' if single else f'[{index}]'}", path)


def _restriction(nested: Schema, schema: Schema, nested_path: str, path: str) -> Iterator[FieldError]:
    for keyword, wanted in _FORBIDDEN_WHEN_NESTED.items():
        if nested.get(keyword):
            yield forbidden(f"{nested_path}.{keyword}", f"must be {wanted} to be structural")
    yield from _combinations(nested, schema, nested_path, path)
    declared = dict(_children(schema, path))
    for child_path, child in _children(nested, nested_path):
        outer_path = path + child_path.removeprefix(nested_path)
        if outer_path in declared:
            yield from _restriction(child, declared[outer_path], child_path, outer_path)
        else:
            yield required(outer_path, f"because it is defined in {child_path}")


def _rule(entry: Mapping[str, Any], schema: Schema, path: str) -> Iterator[FieldError]:
    if not str(entry.get("rule") or "").strip():
        yield required(f"{path}.rule", "rule is not specified")
    field_path = str(entry.get("fieldPath") or "")
    if field_path and schema_at(field_path, schema) is None:
        yield invalid(f"{path}.fieldPath", field_path, "fieldPath must be a valid path")
