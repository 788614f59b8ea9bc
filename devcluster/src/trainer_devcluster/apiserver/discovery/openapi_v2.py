"""OpenAPI v2: what kubectl falls back to, above all to validate objects of kind List before it sends their items.

Clients written in Go ask for the document in protobuf (`openapi.v2.Document` of the gnostic project), others in JSON.
Only the definitions are there: paths are described in OpenAPI v3.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import msgspec

from trainer_devcluster.apiserver.discovery.openapi import schema_name
from trainer_devcluster.apiserver.discovery.openapi_references import add_referenced
from trainer_devcluster.apiserver.objects.built_in_types import built_in_definitions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition

PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""The media type of the answer; the one that Go clients ask for has an at sign, which Go cannot parse."""
_PREFIX: Final = "#/definitions/"
_OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_KINDS: Final = "x-kubernetes-group-version-kind"
_KEPT: Final = (
    "description", "format", "type", "required", "items", "properties", "additionalProperties", "enum", "default",
    "maximum", "minimum", "maxLength", "minLength", "maxItems", "minItems", "pattern",
)  # fmt: skip
_STRINGS: Final = {"$ref": 1, "format": 2, "title": 3, "description": 4, "pattern": 13}
"""Field numbers of the messages of gnostic's `openapiv2.proto`, here of Schema."""


def wants_protobuf(accept: str) -> bool:
    """Whether an Accept header asks for protobuf."""
    return "proto-openapi.spec.v2" in accept and "+protobuf" in accept


def document(definitions: Iterable[ResourceDefinition]) -> Object:
    """The document of `/openapi/v2`."""
    schemas: dict[str, Any] = {}
    for definition in definitions:
        resource, name = definition.resource, schema_name(definition)
        published = built_in_definitions().get(name)
        schema = _custom(definition) if definition.is_custom else _published(published or {"type": "object"})
        kind = {"group": resource.group, "kind": resource.kind, "version": resource.version}
        schemas[name] = {**schema, _KINDS: [kind]}
    add_referenced(schemas, _published, _PREFIX)
    info = {"title": "Kubernetes", "version": "v1.36.0"}
    return {"swagger": "2.0", "info": info, "paths": {}, "definitions": dict(sorted(schemas.items()))}


def encode(document: Object) -> bytes:
    """The document in protobuf."""
    info = _text(1, document["info"]["title"]) + _text(2, document["info"]["version"])
    named = b"".join(_field(1, _named(name, _schema(schema))) for name, schema in document["definitions"].items())
    return _text(1, document["swagger"]) + _field(2, info) + _field(8, b"") + _field(9, named)


def encoded(definitions: Iterable[ResourceDefinition], *, protobuf: bool) -> msgspec.Raw:
    """The document as it is sent."""
    made = document(definitions)
    return msgspec.Raw(encode(made) if protobuf else msgspec.json.encode(made))


def _custom(definition: ResourceDefinition) -> Object:
    declared: Mapping[str, Any] = definition.schema.document if definition.schema is not None else {}
    schema = _simplified(declared)
    if "type" not in schema:
        return schema
    properties = {
        **(schema.get("properties") or {}),
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"$ref": f"{_PREFIX}{_OBJECT_META}"},
    }
    return {**schema, "properties": properties}


def _simplified(schema: Mapping[str, Any]) -> Object:
    """A structural schema with what OpenAPI v2 can say; where that would be too strict, anything goes."""
    open_ended = ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string", "nullable")
    if any(schema.get(keyword) for keyword in open_ended):
        return {name: schema[name] for name in ("description",) if name in schema}
    kept = {name: schema[name] for name in _KEPT if schema.get(name) is not None}
    if "properties" in kept:
        kept["properties"] = {name: _simplified(child) for name, child in kept["properties"].items()}
    for keyword in ("items", "additionalProperties"):
        if isinstance(kept.get(keyword), dict):
            kept[keyword] = _simplified(kept[keyword])
    return kept


def _published(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_published(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    converted = {name: _published(entry) for name, entry in schema.items()}
    if isinstance(converted.get("$ref"), str):
        converted["$ref"] = f"{_PREFIX}{converted['$ref']}"
    return converted


def _schema(schema: Mapping[str, Any]) -> bytes:
    parts = [_text(number, schema[name]) for name, number in _STRINGS.items() if isinstance(schema.get(name), str)]
    parts += [_text(19, name) for name in schema.get("required") or ()]
    additional, items = schema.get("additionalProperties"), schema.get("items")
    if isinstance(additional, dict):
        parts.append(_field(21, _field(1, _schema(additional))))
    if isinstance(schema.get("type"), str):
        parts.append(_field(22, _text(1, schema["type"])))
    if isinstance(items, dict):
        parts.append(_field(23, _field(1, _schema(items))))
    if schema.get("properties"):
        children = (_field(1, _named(name, _schema(child))) for name, child in schema["properties"].items())
        parts.append(_field(25, b"".join(children)))
    for name, value in schema.items():
        if name.startswith("x-kubernetes-"):
            # Extensions are YAML, of which JSON is a part.
            parts.append(_field(31, _named(name, _text(2, json.dumps(value)))))
    return b"".join(parts)


def _named(name: str, value: bytes) -> bytes:
    return _text(1, name) + _field(2, value)


def _text(number: int, text: str) -> bytes:
    return _field(number, text.encode())


def _field(number: int, content: bytes) -> bytes:
    """A length-delimited field."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
