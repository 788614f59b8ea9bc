"""Checks of schemas beyond their structure: which keywords are supported, and how those of Kubernetes go together.

Sources: Kubernetes documentation, "Extend the Kubernetes API with CustomResourceDefinitions"; texts are those of the
API server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trainer.kube.field_errors import forbidden, invalid, not_supported, required
from trainer_devcluster.apiserver.schema.rule_entries import check_entry
from trainer_devcluster.apiserver.schema.structural_check import children, combinations

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trainer.kube.field_errors import FieldError

    Schema = Mapping[str, Any]

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_LIST_TYPES: Final = ("atomic", "set", "map")
_MAP_TYPES: Final = ("atomic", "granular")
_UNSUPPORTED: Final = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_RESOURCE_FIELDS: Final = frozenset({"metadata", "kind", "apiVersion"})
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_LIST_TYPE: Final = "x-kubernetes-list-type"
_MAP_KEYS: Final = "x-kubernetes-list-map-keys"
_MAP_TYPE: Final = "x-kubernetes-map-type"
_SHAPES: Final[dict[tuple[Any, str], tuple[str, ...]]] = {
    (str, "a string"): ("type", "format", "title", "description", "pattern", _LIST_TYPE, _MAP_TYPE),
    (int, "an integer"): ("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"),
    ((int, float), "a number"): ("maximum", "minimum", "multipleOf"),
    (bool, "a boolean"): (
        "nullable", "uniqueItems", "exclusiveMaximum", "exclusiveMinimum", _EMBEDDED, "x-kubernetes-int-or-string",
        "x-kubernetes-preserve-unknown-fields",
    ),
    (list, "a list"): ("enum", "required", "allOf", "anyOf", "oneOf", _MAP_KEYS, "x-kubernetes-validations"),
    (dict, "an object"): ("properties",),
    ((dict, bool), "a schema object or a boolean"): ("additionalProperties",),
    ((dict, list), "a schema object"): ("items",),
    (dict, "a schema object"): ("not",),
}  # fmt: skip
_SHAPE_OF: Final = {keyword: shape for shape, keywords in _SHAPES.items() for keyword in keywords}
_ROOT_KEYWORDS: Final = {
    "description": "Description", "type": "Type", "format": "Format", "title": "Title", "maximum": "Maximum",
    "exclusiveMaximum": "ExclusiveMaximum", "minimum": "Minimum", "exclusiveMinimum": "ExclusiveMinimum",
    "maxLength": "MaxLength", "minLength": "MinLength", "pattern": "Pattern", "maxItems": "MaxItems",
    "minItems": "MinItems", "uniqueItems": "UniqueItems", "multipleOf": "MultipleOf", "required": "Required",
    "items": "Items", "properties": "Properties", "externalDocs": "ExternalDocs", "example": "Example",
    "x-kubernetes-preserve-unknown-fields": "XPreserveUnknownFields", "x-kubernetes-validations": "XValidations",
}  # fmt: skip
"""What may stand at the root beside a status subresource, whose schema is taken out of `properties`."""


def check_shape(schema: object, path: str) -> list[FieldError]:
    """Keywords whose values are of the wrong JSON type, about which nothing else could be said."""
    if not isinstance(schema, dict):
        return [invalid(path, schema, "must be a schema object")]
    causes = [
        invalid(f"{path}.{keyword}", value, f"must be {_SHAPE_OF[keyword][1]}")
        for keyword, value in schema.items()
        if keyword in _SHAPE_OF and value is not None and not _has_shape(value, _SHAPE_OF[keyword][0])
    ]
    if causes:
        return causes
    for nested_path, nested in _nested(schema, path):
        causes += check_shape(nested, nested_path)
    for index, entry in enumerate(schema.get("x-kubernetes-validations") or ()):
        if not isinstance(entry, dict):
            causes.append(invalid(f"{path}.x-kubernetes-validations[{index}]", entry, "must be an object"))
    for keyword in ("required", _MAP_KEYS):
        if not all(isinstance(name, str) for name in schema.get(keyword) or ()):
            causes.append(invalid(f"{path}.{keyword}", schema[keyword], "must be a list of strings"))
    return causes


def _has_shape(value: object, kinds: Any) -> bool:
    if isinstance(value, bool):
        return kinds is bool or (isinstance(kinds, tuple) and bool in kinds)
    return isinstance(value, kinds)


def _nested(schema: Schema, path: str) -> Iterator[tuple[str, object]]:
    """Everything that has to be a schema, whatever it is."""
    for name, child in (schema.get("properties") or {}).items():
        yield f"{path}.properties[{name}]", child
    for keyword in ("additionalProperties", "items", "not"):
        if schema.get(keyword) is not None and not isinstance(schema[keyword], bool | list):
            yield f"{path}.{keyword}", schema[keyword]
    for keyword in ("allOf", "anyOf", "oneOf"):
        for index, nested in enumerate(schema.get(keyword) or ()):
            yield f"{path}.{keyword}[{index}]", nested


def check_root(schema: Schema, path: str, *, status_subresource: bool) -> list[FieldError]:
    """What is wrong with the root of a schema."""
    causes = []
    others = [name for name, value in schema.items() if value and name not in _ROOT_KEYWORDS and name != "nullable"]
    if status_subresource and schema.get("type") not in (None, "", "object"):
        detail = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        causes.append(invalid(f"{path}.type", schema["type"], detail))
    elif status_subresource and others:
        allowed = " ".join(_ROOT_KEYWORDS.values())
        detail = f"only [{allowed}] fields are allowed at the root of the schema if the status subresource is enabled"
        causes.append(invalid(path, schema, detail))
    if schema.get("nullable"):
        causes.append(forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    return causes


def check_keywords(schema: Schema, path: str) -> list[FieldError]:
    """What is wrong with the keywords of a schema and of everything below it; CEL expressions are not compiled."""
    return list(_node(schema, path, is_root=True))


def _node(
    schema: Schema, path: str, *, is_root: bool = False, no_default: str = "", in_metadata: bool = False
) -> Iterator[FieldError]:
    yield from _own(schema, path, no_default, in_metadata=in_metadata)
    is_resource = is_root or bool(schema.get(_EMBEDDED))
    for child_path, child in children(schema, path):
        reason, inside = no_default, in_metadata
        if child_path == f"{path}.additionalProperties" and in_metadata:
            reason = "inside additionalProperties applying to object metadata"
        name = child_path.removeprefix(f"{path}.properties[").removesuffix("]")
        if is_resource and name in _RESOURCE_FIELDS:
            inside, reason = True, f"in top-level {name}" if is_root else reason
        yield from _node(child, child_path, no_default=reason, in_metadata=inside)
    for _, nested_path, nested in combinations(schema, path):
        yield from _node(nested, nested_path, no_default=no_default, in_metadata=in_metadata)
    yield from _lists(schema, path)
    if isinstance(schema.get("items"), dict) and schema.get(_LIST_TYPE) in ("set", "map"):
        yield from _list_items(schema, schema["items"], path)
    for index, entry in enumerate(schema.get("x-kubernetes-validations") or ()):
        yield from check_entry(entry, schema, f"{path}.x-kubernetes-validations[{index}]")


def _own(schema: Schema, path: str, no_default: str, *, in_metadata: bool) -> Iterator[FieldError]:
    declared = schema.get("type")
    if declared and declared not in _TYPES:
        yield not_supported(f"{path}.type", declared, _TYPES)
    if declared == "null":
        yield forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    if schema.get("default") is not None and no_default:
        yield forbidden(f"{path}.default", f"must not be set {no_default}")
    for keyword in _UNSUPPORTED:
        if schema.get(keyword):
            yield forbidden(f"{path}.{keyword}", f"{keyword} is not supported")
    if isinstance(schema.get("items"), list):
        yield forbidden(f"{path}.items", "items must be a schema object and not an array")
    if in_metadata and schema.get(_EMBEDDED):
        yield forbidden(f"{path}.{_EMBEDDED}", "must not be used inside of resource meta")
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{path}.uniqueItems", detail)
    additional = schema.get("additionalProperties")
    if additional is False:
        yield forbidden(f"{path}.additionalProperties", "additionalProperties cannot be set to false")
    if schema.get("properties") and isinstance(additional, dict):
        detail = "additionalProperties and properties are mutual exclusive"
        yield forbidden(f"{path}.additionalProperties", detail)
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")


def _of_type(schema: Schema, path: str, wanted: str, keyword: str) -> Iterator[FieldError]:
    """A keyword that goes with one type only."""
    declared, detail = schema.get("type"), f"must be {wanted} if {keyword} is specified"
    if schema.get(keyword) is not None and declared != wanted:
        yield invalid(f"{path}.type", declared, detail) if declared else required(f"{path}.type", detail)


def _lists(schema: Schema, path: str) -> Iterator[FieldError]:
    list_type, map_type, keys = schema.get(_LIST_TYPE), schema.get(_MAP_TYPE), schema.get(_MAP_KEYS) or []
    yield from _of_type(schema, path, "object", _MAP_TYPE)
    if map_type is not None and map_type not in _MAP_TYPES:
        yield not_supported(f"{path}.{_MAP_TYPE}", map_type, _MAP_TYPES)
    yield from _of_type(schema, path, "array", _LIST_TYPE)
    if list_type is not None and list_type not in _LIST_TYPES:
        yield not_supported(f"{path}.{_LIST_TYPE}", list_type, _LIST_TYPES)
    if keys and list_type != "map":
        detail = f"must be map if {_MAP_KEYS} is non-empty"
        yield (
            required(f"{path}.{_LIST_TYPE}", detail)
            if list_type is None
            else invalid(f"{path}.{_LIST_TYPE}", list_type, detail)
        )
    if list_type == "map" and not keys:
        yield required(f"{path}.{_MAP_KEYS}", f"must not be empty if {_LIST_TYPE} is map")
    if list_type == "map" and schema.get("items") is None:
        yield required(f"{path}.items", f"must have a schema if {_LIST_TYPE} is map")


def _list_items(schema: Schema, items: Schema, path: str) -> Iterator[FieldError]:
    """Items of sets are compared as a whole, those of maps by their keys."""
    list_type = schema[_LIST_TYPE]
    if list_type == "set":
        for declared, keyword in (("array", _LIST_TYPE), ("object", _MAP_TYPE)):
            merged = items.get(keyword, "atomic" if declared == "array" else None)
            if items.get("type") == declared and merged != "atomic":
                detail = f"must be atomic as item of a list with {_LIST_TYPE}=set"
                yield invalid(f"{path}.items.{keyword}", items.get(keyword), detail)
    elif items.get("type") != "object":
        detail = f"must be object if parent array's {_LIST_TYPE} is map"
        yield invalid(f"{path}.items.type", items.get("type") or "", detail)
    else:
        yield from _map_keys(schema, items, path)
    if items.get("nullable"):
        yield forbidden(f"{path}.items.nullable", f"cannot be nullable when {_LIST_TYPE} is {list_type}")


def _map_keys(schema: Schema, items: Schema, path: str) -> Iterator[FieldError]:
    keys, properties = list(schema.get(_MAP_KEYS) or ()), items.get("properties") or {}
    for index, key in enumerate(keys):
        key_path, declared = f"{path}.items.properties[{key}]", properties.get(key)
        if declared is None:
            yield invalid(f"{path}.{_MAP_KEYS}", keys, "entries must all be names of item properties")
        elif declared.get("type") in ("array", "object"):
            detail = f"must be a scalar type if parent array's {_LIST_TYPE} is map"
            yield invalid(f"{key_path}.type", items.get("type"), detail)
        if key in keys[:index]:
            yield invalid(f"{path}.{_MAP_KEYS}", keys, "must not contain duplicate entries")
    because = f"this property is in {_MAP_KEYS}, so it"
    for key in keys:
        declared = properties.get(key)
        if declared is None:
            continue
        if key not in (items.get("required") or ()) and declared.get("default") is None:
            detail = f"{because} must have a default or be a required property"
            yield required(f"{path}.items.properties[{key}].default", detail)
        if declared.get("nullable"):
            yield forbidden(f"{path}.items.properties[{key}].nullable", f"{because} cannot be nullable")
