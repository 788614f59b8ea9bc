"""Versions: how the stored objects of a definition are read and written in each of its versions.

What is stored is in the version that was the storage version when it was written. It is read with the schema of that
version as it is now (fields that it no longer has are dropped, later defaults filled in) and stripped of what
the wanted version does not have; all versions have the same fields, as there are no conversion webhooks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from trainer.kube.merge_patch import writable_copy
from trainer.kube.objects import Object, ObjectKey, key_of, resource_version_of
from trainer_devcluster.apiserver.schema.structural import StructuralSchema

_KEPT: Final = 20_000
"""So many converted objects are kept; beyond that all are forgotten and made again when somebody asks."""


class Versions:
    """The versions of one definition; shared by the resources that serve them."""

    def __init__(self, storage: str, schemas: Mapping[str, StructuralSchema], since: int) -> None:
        """Describe a definition.

        Args:
            storage: API version that is stored, such as `example.com/v1`.
            schemas: by API version, served or not.
            since: revision of the storage when the definition took effect; younger objects have been pruned and
                defaulted by it when they were written.
        """
        self.storage = storage
        """API version that is stored."""
        self._schemas = schemas
        self._since = since
        self._read: dict[tuple[str, ObjectKey, str], tuple[Object, Object]] = {}
        """By version, key and resource version: the stored object, and what it is read as."""

    def read(self, obj: Object, api_version: str) -> Object:
        """A stored object in a version; shared, never change it."""
        if obj["apiVersion"] == api_version and self._is_young(obj):
            return obj
        key = api_version, key_of(obj), resource_version_of(obj)
        kept = self._read.get(key)
        if kept is not None and kept[0] is obj:
            return kept[1]
        made = self.convert(self._current(obj), api_version)
        if len(self._read) >= _KEPT:
            self._read.clear()
        self._read[key] = obj, made
        return made

    def convert(self, obj: Object, api_version: str) -> Object:
        """An object in another version: the same fields, without those that the version does not have."""
        if obj["apiVersion"] == api_version:
            return obj
        return self._pruned({**obj, "apiVersion": api_version}, api_version)

    def _is_young(self, obj: Object) -> bool:
        return int(resource_version_of(obj) or 0) > self._since

    def _current(self, obj: Object) -> Object:
        """A stored object in its own version as the schema of that version is now."""
        schema = self._schemas.get(obj["apiVersion"])
        if schema is None or self._is_young(obj):
            return obj
        copied: Object = writable_copy(obj)
        schema.prune(copied)
        schema.default(copied)
        return copied

    def _pruned(self, obj: Object, api_version: str) -> Object:
        schema = self._schemas.get(api_version)
        if schema is None:
            return obj
        copied: Object = writable_copy(obj)
        schema.prune(copied)
        return copied
