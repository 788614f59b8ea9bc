"""Schemas in expressions: the types that CEL gives to what a schema describes, and values of these types.

Source: Kubernetes documentation, "Type checking" of validation rules.
"""

from __future__ import annotations

import base64
import binascii
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from trainer_devcluster.apiserver.cel import types
from trainer_devcluster.apiserver.cel.errors import EvaluationError
from trainer_devcluster.apiserver.cel.library.times import parse_duration
from trainer_devcluster.apiserver.objects.correlation import item_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer_devcluster.apiserver.cel.types import Type

    Schema = Mapping[str, Any]

ROOT_PROPERTIES: Final = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}},
    },
}
"""What expressions see of every whole object beyond its declared fields."""
_RESERVED: Final = frozenset(
    (
        "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import",
        "let", "loop", "package", "namespace", "return", "var", "void", "while",
    )
)  # fmt: skip
_ESCAPES: Final = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))
_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_SCALARS: Final = {
    "boolean": types.BOOL, "integer": types.INT, "number": types.DOUBLE, "string": types.STRING,
}  # fmt: skip
_STRING_FORMATS: Final = {
    "byte": types.BYTES, "date": types.TIMESTAMP, "date-time": types.TIMESTAMP, "duration": types.DURATION,
}  # fmt: skip


class SchemaTypes:
    """Types of the nodes of one schema, each made once."""

    def __init__(self) -> None:
        self._made: dict[int, Type | None] = {}

    def of(self, schema: Schema, *, is_resource: bool = False) -> Type | None:
        """The type of a node; None when expressions cannot reach what it describes.

        Args:
            schema: a node of a structural schema.
            is_resource: whether it describes a whole object.
        """
        if is_resource or schema.get("x-kubernetes-embedded-resource"):
            return self._object(with_root_properties(schema))
        key = id(schema)
        if key not in self._made:
            self._made[key] = self._make(schema)
        return self._made[key]

    def _make(self, schema: Schema) -> Type | None:
        if schema.get("x-kubernetes-int-or-string"):
            return types.DYN
        declared = schema.get("type")
        if declared == "array":
            items = schema.get("items")
            item = self.of(items) if isinstance(items, dict) else None
            return types.list_of(item) if item is not None else None
        if declared == "object":
            additional = schema.get("additionalProperties")
            if additional is True:
                return types.map_of(types.STRING, types.DYN)
            if isinstance(additional, dict):
                value = self.of(additional)
                return types.map_of(types.STRING, value) if value is not None else None
            return self._object(schema)
        if declared == "string":
            return _STRING_FORMATS.get(str(schema.get("format") or ""), types.STRING)
        return _SCALARS.get(str(declared or ""))

    def _object(self, schema: Schema) -> Type:
        fields: dict[str, Type] = {}
        for name, child in (schema.get("properties") or {}).items():
            found = self.of(child) if isinstance(child, dict) else None
            if found is not None and _NAME.fullmatch(escape(name)):
                fields[escape(name)] = found
        # Objects of different nodes are of different types, also when they have the same fields.
        return types.object_of(f"object{id(schema)}", fields)


def with_root_properties(schema: Schema) -> Schema:
    """The schema of a whole object with what every object has."""
    return {**schema, "properties": {**(schema.get("properties") or {}), **ROOT_PROPERTIES}}


def escape(name: str) -> str:
    """A property name as expressions write it: `a-b` is `a__dash__b`."""
    if name in _RESERVED:
        return f"__{name}__"
    for text, replacement in _ESCAPES:
        name = name.replace(text, replacement)
    return name


def value_of(value: Any, schema: Schema, *, order_like: Any = None) -> Any:
    """A JSON value as its schema types it in CEL.

    Args:
        value: the JSON value.
        schema: its structural schema.
        order_like: the other side of a comparison; sets and map lists come in its order, because their own order has
            no meaning in CEL.
    """
    if value is None or schema.get("x-kubernetes-int-or-string"):
        return value
    if isinstance(value, dict):
        return _map_of(value, schema, order_like if isinstance(order_like, dict) else {})
    if isinstance(value, list):
        items = schema.get("items") or {}
        pairs = _paired(value, order_like, schema)
        return [value_of(item, items, order_like=other) for item, other in pairs]
    if schema.get("type") == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if schema.get("type") == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    return _text_of(value, str(schema.get("format") or "")) if isinstance(value, str) else value


def _map_of(value: Mapping[str, Any], schema: Schema, order_like: Mapping[str, Any]) -> dict[str, Any]:
    if schema.get("x-kubernetes-embedded-resource"):
        schema = with_root_properties(schema)
    properties, additional = schema.get("properties"), schema.get("additionalProperties")
    typed: dict[str, Any] = {}
    for name, child in value.items():
        other = order_like.get(name)
        if isinstance(properties, dict) and name in properties:
            typed[escape(name)] = value_of(child, properties[name], order_like=other)
        elif isinstance(additional, dict):
            typed[name] = value_of(child, additional, order_like=other)
        elif not properties:
            typed[name] = value_of(child, {}, order_like=other)
    return typed


def _paired(items: list[Any], order_like: Any, schema: Schema) -> list[tuple[Any, Any]]:
    list_type = schema.get("x-kubernetes-list-type")
    if not isinstance(order_like, list) or list_type not in ("set", "map"):
        return [(item, None) for item in items]

    def key(item: Any) -> object:
        return item_key(item, schema) if list_type == "map" else repr(item)

    positions = {key(other): index for index, other in enumerate(order_like)}
    ordered = sorted(items, key=lambda item: positions.get(key(item), len(order_like)))
    return [(item, order_like[positions[key(item)]] if key(item) in positions else None) for item in ordered]


def _text_of(text: str, text_format: str) -> object:
    try:
        if text_format == "byte":
            return base64.b64decode(text, validate=True)
        if text_format in ("date-time", "date"):
            moment = datetime.fromisoformat(text)
            return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        if text_format == "duration":
            return parse_duration(text)
    except (ValueError, binascii.Error, EvaluationError):
        return text
    return text
