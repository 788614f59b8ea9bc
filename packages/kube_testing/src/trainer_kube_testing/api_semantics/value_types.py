"""How lists and maps are merged: what server-side apply, merge patches and updates need of a type.

Sources: Kubernetes documentation, "Server-Side Apply", "Merge strategy"; KEP-555.
"""

from __future__ import annotations

from enum import StrEnum


class ListType(StrEnum):
    """How two versions of a list are merged (`x-kubernetes-list-type`)."""

    ATOMIC = "atomic"
    """The list is one value."""
    SET = "set"
    """Scalars, each once."""
    MAP = "map"
    """Objects with key fields."""


class Typing:
    """The type of one value in an object, which leads to those of its fields or items; this one is that of anything.

    Its maps are merged by key, its lists as one value.
    """

    __slots__ = ()

    @property
    def json_type(self) -> str:
        """The `type` of an OpenAPI schema; "" where several are allowed."""
        return ""

    @property
    def is_atomic_map(self) -> bool:
        """Whether an object here is merged as one value (`x-kubernetes-map-type: atomic`)."""
        return False

    @property
    def list_type(self) -> ListType:
        """How a list here is merged; by its patch strategy, unless it declares a type."""
        if "merge" not in self.patch_strategies:
            return ListType.ATOMIC
        return ListType.MAP if self.merge_key else ListType.SET

    @property
    def list_map_keys(self) -> tuple[str, ...]:
        """The fields that identify an item of a `ListType.MAP` list."""
        return (self.merge_key,) if self.merge_key else ()

    @property
    def merge_key(self) -> str | None:
        """Field by which a strategic merge patch finds list items (`x-kubernetes-patch-merge-key`)."""
        return None

    @property
    def patch_strategies(self) -> frozenset[str]:
        """What a strategic merge patch does here: merge, replace, retainKeys; nothing means the default."""
        return frozenset()

    def declares(self, name: str) -> bool:  # noqa: ARG002
        """Whether this is a named field, as opposed to a key of a map."""
        return False

    def field(self, name: str) -> Typing | None:  # noqa: ARG002
        """The type of a field or map value; None when it may not be there."""
        return self

    @property
    def item(self) -> Typing:
        """The type of list items."""
        return self

    def key_default(self, key: str) -> object:  # noqa: ARG002
        """The value of a list map key that an item leaves out; None when it must be there."""
        return None


UNTYPED = Typing()
"""Anything."""
