"""How lists and maps of a kind are merged, and which fields it has, by its OpenAPI schema.

One node type serves custom resources and built-in kinds. Sources: Kubernetes documentation, "Server-Side Apply",
"Merge strategy"; KEP-555.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trainer.kube.objects import Object
from trainer_kube_testing.api_semantics.value_types import ListType, Typing

Schema = dict[str, Any]

OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
"""Name of the definition that `definitions` must have wherever a whole object may stand."""
# The published types have no defaults; these are the defaulted fields among list map keys.
_BUILT_IN_KEY_DEFAULTS: Final = {"protocol": "TCP"}


class SchemaTyping(Typing):
    """The type that a schema gives to one value: a node that leads to the types of its fields or items.

    Nodes are made while walking and never change. As many are kept as the schema has places, whatever names clients
    make up.
    """

    __slots__ = (
        "_additional", "_definitions", "_fields", "_item", "_list_type", "_properties", "is_int_or_string", "is_open",
        "is_untyped", "name", "schema",
    )  # fmt: skip

    def __init__(self, schema: Mapping[str, Any], definitions: Mapping[str, Schema] | None = None) -> None:
        """Wrap a structural schema, or one that refers to `definitions` by `$ref`."""
        self._definitions = definitions or {}
        self.name = str(schema.get("$ref") or "")
        """Name of the definition that it is; "" when it has none of its own."""
        self.schema = self._resolve(schema)
        """OpenAPI schema of the value, references resolved at this level."""
        self._properties: Mapping[str, Schema] = self.schema.get("properties") or {}
        self.is_int_or_string = bool(self.schema.get("x-kubernetes-int-or-string"))
        """Whether an integer or a string stands here (ports, quantities)."""
        self.is_untyped = "type" not in self.schema and not self.is_int_or_string
        """Whether any JSON value may stand here."""
        self.is_open = bool(self.schema.get("x-kubernetes-preserve-unknown-fields")) or (
            self.is_untyped and not self._properties
        )
        """Whether fields beyond the declared ones are kept."""
        self._fields: dict[str, SchemaTyping] = {}
        self._additional: SchemaTyping | None = None
        self._item: SchemaTyping | None = None
        self._list_type: ListType | None = None

    @property
    def json_type(self) -> str:
        """The `type` of the schema, unless any value or a string besides an integer may stand here."""
        return "" if self.is_int_or_string or self.is_untyped else str(self.schema["type"])

    @property
    def is_atomic_map(self) -> bool:
        """Whether an object here is merged as one value (`x-kubernetes-map-type: atomic`)."""
        return self.schema.get("x-kubernetes-map-type") == "atomic"

    @property
    def list_type(self) -> ListType:
        """How a list here is merged; the older patch strategy counts where no list type is declared."""
        if self._list_type is None:
            declared = self.schema.get("x-kubernetes-list-type")
            self._list_type = super().list_type if declared is None else ListType(declared)
        return self._list_type

    @property
    def list_map_keys(self) -> tuple[str, ...]:
        """The fields that identify an item of a `ListType.MAP` list."""
        keys = self.schema.get("x-kubernetes-list-map-keys")
        return tuple(keys) if keys else super().list_map_keys

    @property
    def merge_key(self) -> str | None:
        """Field by which a strategic merge patch finds list items (`x-kubernetes-patch-merge-key`)."""
        return self.schema.get("x-kubernetes-patch-merge-key")

    @property
    def patch_strategies(self) -> frozenset[str]:
        """What a strategic merge patch does here: merge, replace, retainKeys; nothing means the default."""
        declared: str = self.schema.get("x-kubernetes-patch-strategy") or ""
        return frozenset(filter(None, declared.split(",")))

    def declares(self, name: str) -> bool:
        """Whether this is a named field, as opposed to a key of a map."""
        return name in self._properties

    def field(self, name: str) -> SchemaTyping | None:
        """The type of a field or map value; None when it may not be there."""
        known = self._fields.get(name)
        if known is not None:
            return known
        declared = self._properties.get(name)
        if declared is None:
            return self._additional_field()
        found = self._fields[name] = SchemaTyping(declared, self._definitions)
        return found

    @property
    def item(self) -> SchemaTyping:
        """The type of list items; untyped when none is declared."""
        if self._item is None:
            items = self.schema.get("items")
            self._item = SchemaTyping(items, self._definitions) if isinstance(items, dict) else UNTYPED
        return self._item

    def key_default(self, key: str) -> object:
        """The value of a list map key that an item leaves out; None when it must be there."""
        field = self.item.field(key)
        declared = field.schema.get("default") if field is not None else None
        is_built_in = "x-kubernetes-patch-strategy" in self.schema
        return declared if declared is not None or not is_built_in else _BUILT_IN_KEY_DEFAULTS.get(key)

    def prune(self, obj: Object) -> list[str]:
        """Remove the fields that the type does not have, in place.

        Returns:
            Their paths, sorted: `spec.parts[0].colour`.
        """
        removed: list[str] = []
        _prune(obj, self, "", removed)
        return sorted(removed)

    def _resolve(self, schema: Mapping[str, Any]) -> Schema:
        resolved = dict(schema)
        reference = resolved.pop("$ref", None)
        if isinstance(reference, str):
            resolved = self._resolve(self._definitions[reference]) | resolved
        if resolved.get("x-kubernetes-embedded-resource"):
            resolved = as_resource(resolved)
        return resolved

    def _additional_field(self) -> SchemaTyping | None:
        if self._additional is None:
            additional = self.schema.get("additionalProperties")
            if isinstance(additional, dict):
                self._additional = SchemaTyping(additional, self._definitions)
            elif additional is True or self.is_open:
                self._additional = UNTYPED
        return self._additional


UNTYPED: Final = SchemaTyping({})
"""Anything: maps are merged by key, lists as one value."""


def as_resource(schema: Mapping[str, Any]) -> Schema:
    """The schema of a whole object, whose metadata is that of every object."""
    properties: Schema = {
        **(schema.get("properties") or {}),
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"$ref": OBJECT_META},
    }
    return {**schema, "type": "object", "properties": properties, "x-kubernetes-embedded-resource": False}


def _prune(value: object, typing: SchemaTyping, path: str, removed: list[str]) -> None:
    if isinstance(value, list):
        for index, item in enumerate(value):
            _prune(item, typing.item, f"{path}[{index}]", removed)
    elif isinstance(value, dict):
        for name in list(value):
            child = f"{path}.{name}" if path else name
            field = typing.field(name)
            if field is None:
                del value[name]
                removed.append(child)
            else:
                _prune(value[name], field, child, removed)
