"""Checks of schemas themselves: whether a definition's schema is structural and uses only supported keywords.

Source: Kubernetes documentation, "Specifying a structural schema".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trainer.devcluster.apiserver.formats import compile_pattern
from trainer.kube import field_errors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer.kube.field_errors import FieldError

    Schema = Mapping[str, Any]

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_LIST_TYPES: Final = ("atomic", "set", "map")
_MAP_TYPES: Final = ("atomic", "granular")
_FORBIDDEN: Final = (
    "$ref", "additionalItems", "definitions", "dependencies", "id", "patternProperties",
)  # fmt: skip
_NOT_IN_COMBINATIONS: Final = ("default", "description", "nullable", "title", "type", "additionalProperties")
_COMBINATIONS: Final = ("allOf", "anyOf", "oneOf")


def check_schema(schema: Schema, path: str) -> list[FieldError]:
    """Why a schema cannot be served; nothing when it can.

    Args:
        schema: the `openAPIV3Schema` of a version.
        path: where it is in the definition, for the fields of the causes.
    """
    causes = _check(schema, path, "must not be empty at the root")
    if schema.get("type") not in (None, "", "object"):
        causes.append(field_errors.invalid(f"{path}.type", schema.get("type"), "must be object at the root"))
    if schema.get("nullable"):
        causes.append(field_errors.forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    return causes


def _check(schema: object, path: str, no_type: str) -> list[FieldError]:
    if not isinstance(schema, dict):
        return [field_errors.invalid(path, schema, "must be a schema object")]
    causes = _check_keywords(schema, path) + _check_type(schema, path, no_type) + _check_list(schema, path)
    if schema.get("properties") and schema.get("additionalProperties"):
        causes.append(
            field_errors.forbidden(
                f"{path}.additionalProperties", "additionalProperties and properties are mutual exclusive"
            )
        )
    for keyword in _COMBINATIONS:
        for index, nested in enumerate(schema.get(keyword) or ()):
            causes += _check_nested(nested, f"{path}.{keyword}[{index}]", schema)
    if schema.get("not") is not None:
        causes += _check_nested(schema["not"], f"{path}.not", schema)
    for name, child in (schema.get("properties") or {}).items():
        causes += _check(child, f"{path}.properties[{name}]", "must not be empty for specified object fields")
    if isinstance(schema.get("additionalProperties"), dict):
        nested_path = f"{path}.additionalProperties"
        causes += _check(schema["additionalProperties"], nested_path, "must not be empty for specified object fields")
    if schema.get("items") is not None:
        causes += _check(schema["items"], f"{path}.items", "must not be empty for specified array items")
    return causes


def _check_keywords(schema: Schema, path: str) -> list[FieldError]:
    causes = [
        field_errors.forbidden(f"{path}.{keyword}", f"{keyword} is not supported")
        for keyword in _FORBIDDEN
        if schema.get(keyword)
    ]
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        causes.append(field_errors.forbidden(f"{path}.uniqueItems", detail))
    if schema.get("additionalProperties") is False:
        causes.append(
            field_errors.forbidden(f"{path}.additionalProperties", "additionalProperties cannot be set to false")
        )
    if schema.get("pattern"):
        try:
            compile_pattern(schema["pattern"])
        except ValueError as error:
            causes.append(field_errors.invalid(f"{path}.pattern", schema["pattern"], str(error)))
    return causes


def _check_type(schema: Schema, path: str, no_type: str) -> list[FieldError]:
    declared = schema.get("type")
    if schema.get("x-kubernetes-int-or-string"):
        if declared:
            detail = "must be empty if x-kubernetes-int-or-string is true"
            return [field_errors.invalid(f"{path}.type", declared, detail)]
        return []
    if not declared:
        if schema.get("x-kubernetes-preserve-unknown-fields"):
            return []
        return [field_errors.required(f"{path}.type", no_type)]
    if declared not in _TYPES:
        return [field_errors.not_supported(f"{path}.type", declared, _TYPES)]
    if declared == "array" and schema.get("items") is None:
        return [field_errors.required(f"{path}.items", "must be specified")]
    return []


def _check_list(schema: Schema, path: str) -> list[FieldError]:
    list_type, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or ()
    map_type = schema.get("x-kubernetes-map-type")
    causes: list[FieldError] = []
    if list_type is not None and list_type not in _LIST_TYPES:
        causes.append(field_errors.not_supported(f"{path}.x-kubernetes-list-type", list_type, _LIST_TYPES))
    if map_type is not None and map_type not in _MAP_TYPES:
        causes.append(field_errors.not_supported(f"{path}.x-kubernetes-map-type", map_type, _MAP_TYPES))
    if list_type is not None and schema.get("type") != "array":
        detail = "must be array if x-kubernetes-list-type is specified"
        causes.append(field_errors.invalid(f"{path}.type", schema.get("type"), detail))
    if list_type == "map" and not keys:
        detail = "must not be empty if x-kubernetes-list-type is map"
        causes.append(field_errors.required(f"{path}.x-kubernetes-list-map-keys", detail))
    if keys and list_type != "map":
        detail = "must be map if x-kubernetes-list-map-keys is non-empty"
        causes.append(field_errors.invalid(f"{path}.x-kubernetes-list-type", list_type, detail))
    if keys and list_type == "map":
        causes += _check_map_keys(schema, keys, path)
    return causes


def _check_map_keys(schema: Schema, keys: Any, path: str) -> list[FieldError]:
    items = schema.get("items") or {}
    properties, required = items.get("properties") or {}, items.get("required") or ()
    causes = []
    for key in keys:
        if key not in properties:
            detail = "entries must all be names of item properties"
            causes.append(field_errors.invalid(f"{path}.x-kubernetes-list-map-keys", list(keys), detail))
        elif key not in required and properties[key].get("default") is None:
            detail = (
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            )
            causes.append(field_errors.required(f"{path}.items.properties[{key}].default", detail))
    return causes


def _check_nested(nested: object, path: str, parent: Schema) -> list[FieldError]:
    """Inside allOf, anyOf, oneOf and not only value validations may stand."""
    if not isinstance(nested, dict):
        return [field_errors.invalid(path, nested, "must be a schema object")]
    causes = _check_keywords(nested, path)
    for keyword in _NOT_IN_COMBINATIONS:
        allowed = (
            keyword == "type" and parent.get("x-kubernetes-int-or-string") and nested["type"] in ("integer", "string")
        )
        if nested.get(keyword) and not allowed:
            causes.append(field_errors.forbidden(f"{path}.{keyword}", "must be empty to be structural"))
    declared = parent.get("properties") or {}
    for name, child in (nested.get("properties") or {}).items():
        if name in declared:
            causes += _check_nested(child, f"{path}.properties[{name}]", declared[name])
    if isinstance(nested.get("items"), dict):
        causes += _check_nested(nested["items"], f"{path}.items", parent.get("items") or {})
    return causes
