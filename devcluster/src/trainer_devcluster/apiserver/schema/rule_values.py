"""Values in validation rules: JSON values with the names and numbers that their schema gives them.

Texts stay texts in every format: a rule compares times as `timestamp(self.when)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trainer_devcluster.apiserver.schema.list_items import item_key

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    return value


def _map_of(value: Mapping[str, Any], schema: Schema, order_like: Mapping[str, Any]) -> dict[str, Any]:
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
