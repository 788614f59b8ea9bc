"""Versions: how the stored objects of a definition are read and written in each of its versions.

What is stored is in the version that was the storage version when it was written. It is read with the schema of that
version as it is now (fields that it no longer has are dropped, later defaults filled in), converted, and stripped of
what the wanted version does not have. None of this is written back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainer.kube.api_semantics.json_values import writable_copy
from trainer.kube.objects import ObjectKey, key_of, resource_version_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.conversion.converter import Converter
    from trainer_devcluster.apiserver.schema.structural import StructuralSchema

_KEPT: Final = 20_000
"""So many converted objects are kept; beyond that all are forgotten and made again when somebody asks."""


class Versions:
    """The versions of one definition; shared by the resources that serve them."""

    def __init__(
        self, storage: str, schemas: Mapping[str, StructuralSchema], converter: Converter, since: int = -1
    ) -> None:
        """Describe a definition.

        Args:
            storage: API version that is stored, such as `example.com/v1`.
            schemas: of custom resources, by API version, served or not.
            converter: how an object becomes one of another version.
            since: revision of the storage when the definition took effect; younger objects have been pruned and
                defaulted by it when they were written. Defaults to before the first one, for built-in kinds.
        """
        self.storage = storage
        """API version that is stored."""
        self._schemas = schemas
        self._converter = converter
        self._since = since
        self._read: dict[tuple[str, ObjectKey, str], tuple[Object, Object]] = {}
        """By version, key and resource version: the stored object, and what it is read as."""

    async def read(self, objects: Sequence[Object], api_version: str) -> list[Object]:
        """Stored objects in a version; shared, never change them.

        Raises:
            ApiError: 500, they cannot be converted.
        """
        found = [self.known(obj, api_version) for obj in objects]
        missing = [index for index, obj in enumerate(found) if obj is None]
        if missing:
            made = await self.convert([self._current(objects[index]) for index in missing], api_version)
            for index, obj in zip(missing, made, strict=True):
                self._keep(objects[index], obj, api_version)
                found[index] = obj
        return [obj for obj in found if obj is not None]

    async def convert(self, objects: Sequence[Object], api_version: str) -> list[Object]:
        """Objects in another version, without what that one does not have; those that are in it stay as they are.

        Raises:
            ApiError: 500, they cannot be converted.
        """
        converted = list(objects)
        foreign = [index for index, obj in enumerate(objects) if obj["apiVersion"] != api_version]
        if foreign:
            made = await self._converter.convert([objects[index] for index in foreign], api_version)
            for index, obj in zip(foreign, made, strict=True):
                converted[index] = self._pruned(obj, api_version)
        return converted

    async def to_store(self, obj: Object) -> Object:
        """An object as it is stored.

        Raises:
            ApiError: 500, it cannot be converted.
        """
        if obj["apiVersion"] == self.storage:
            return obj
        return (await self.convert([obj], self.storage))[0]

    def known(self, obj: Object, api_version: str) -> Object | None:
        """What a stored object is read as; None when that has still to be found out by `read`."""
        if obj["apiVersion"] == api_version and self._is_young(obj):
            return obj
        kept = self._read.get((api_version, key_of(obj), resource_version_of(obj)))
        return kept[1] if kept is not None and kept[0] is obj else None

    def _keep(self, obj: Object, read: Object, api_version: str) -> None:
        if len(self._read) >= _KEPT:
            self._read.clear()
        self._read[api_version, key_of(obj), resource_version_of(obj)] = obj, read

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
