"""Presentation: stored objects in the shape that a client has asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.kube.api_semantics import statuses
from trainer.kube.objects import resource_version_of
from trainer_devcluster.apiserver.tables.table import IncludeObject, table
from trainer_devcluster.apiserver.wire.headers import META_GROUP, Shape

if TYPE_CHECKING:
    from collections.abc import Hashable

    from trainer.kube.api_semantics.paging import Page
    from trainer.kube.clock import Clock
    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
    from trainer_devcluster.apiserver.wire.headers import AnswerFormat


@dataclass(frozen=True, slots=True)
class Presenter:
    """Writes objects of one resource for one request."""

    definition: ResourceDefinition
    wanted: AnswerFormat
    include_object: IncludeObject
    clock: Clock
    """Ages in tables are computed when they are written, which in a watch is long after the request."""

    @property
    def media_type(self) -> Hashable:
        """What the bytes of an answer depend on beside the object, as long as the definition stays."""
        return self.definition.resource, self.wanted, self.include_object

    def single(self, obj: Object) -> Object:
        """One object."""
        if self.wanted.shape is Shape.TABLE:
            return self._table([obj], resource_version_of(obj))
        if self.wanted.shape is Shape.METADATA:
            return self._metadata(obj)
        return self._versioned(obj)

    def page(self, page: Page[Object]) -> Object:
        """One page of a list."""
        version = str(page.revision)
        if self.wanted.shape is Shape.TABLE:
            return self._table(page.items, version, page)
        resource, metadata = self.definition.resource, _list_metadata(page)
        if self.wanted.shape is Shape.METADATA:
            items = [self._metadata(obj) for obj in page.items]
            kind, api_version = "PartialObjectMetadataList", self._meta_version
        elif self.definition.is_custom:
            metadata.setdefault("continue", "")
            items = [self._versioned(obj) for obj in page.items]
            kind, api_version = self.definition.collection_kind, resource.api_version
        else:
            items = [_without_type(obj) for obj in page.items]
            kind, api_version = self.definition.collection_kind, resource.api_version
        return {"kind": kind, "apiVersion": api_version, "metadata": metadata, "items": items}

    def event(self, kind: str, obj: Object, *, first: bool) -> Object:
        """One watch event; of tables only the first has column definitions."""
        if kind == "ERROR":
            return {"type": kind, "object": obj}
        if kind == "BOOKMARK":
            return {"type": kind, "object": self._bookmark(obj)}
        shown = self.single(obj)
        if self.wanted.shape is Shape.TABLE and not first:
            shown["columnDefinitions"] = None
        return {"type": kind, "object": shown}

    @property
    def _meta_version(self) -> str:
        return f"{META_GROUP}/{self.wanted.version}"

    def _bookmark(self, obj: Object) -> Object:
        if self.wanted.shape is Shape.TABLE:
            return self._table([], resource_version_of(obj))
        if self.wanted.shape is Shape.METADATA:
            return self._metadata(obj)
        return obj

    def _table(self, objects: list[Object], resource_version: str, page: Page[Object] | None = None) -> Object:
        return table(
            [self._versioned(obj) for obj in objects],
            self.definition,
            include_object=self.include_object,
            resource_version=resource_version,
            continue_=page.continue_token if page is not None else "",
            remaining_item_count=page.remaining if page is not None else None,
            now=self.clock.now(),
            version=self.wanted.version,
        )

    def _metadata(self, obj: Object) -> Object:
        return {"kind": "PartialObjectMetadata", "apiVersion": self._meta_version, "metadata": obj["metadata"]}

    def _versioned(self, obj: Object) -> Object:
        # Versions of a custom resource differ only in name: there are no conversion webhooks.
        return {**obj, "apiVersion": self.definition.resource.api_version}


def include_object(text: str) -> IncludeObject:
    """The `includeObject` parameter of a Table request.

    Raises:
        ApiError: 400, it is not one of the policies.
    """
    try:
        return IncludeObject(text or IncludeObject.METADATA)
    except ValueError as error:
        supported = ", ".join(IncludeObject)
        raise statuses.bad_request(f"includeObject: {text!r} is not one of {supported}") from error


def _list_metadata(page: Page[Object]) -> Object:
    metadata: Object = {"resourceVersion": str(page.revision)}
    if page.continue_token:
        metadata["continue"] = page.continue_token
    if page.remaining:
        metadata["remainingItemCount"] = page.remaining
    return metadata


def _without_type(obj: Object) -> Object:
    return {name: value for name, value in obj.items() if name not in {"apiVersion", "kind"}}
