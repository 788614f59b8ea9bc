"""Read requests: get and list, and stored objects in the shape that a client has asked for."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import partial

from trainer.kube.clock import Clock, move_on_after
from trainer.kube.objects import Object, key_of, namespace_of, resource_version_of
from trainer_devcluster.apiserver.backend import Backend
from trainer_devcluster.apiserver.definitions.field_selectors import Selectors
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition, as_requested
from trainer_devcluster.apiserver.definitions.routing import Target
from trainer_devcluster.apiserver.storage.storage import Partition
from trainer_devcluster.apiserver.tables.table import IncludeObject, table
from trainer_devcluster.apiserver.wire.headers import META_GROUP, AnswerFormat, Shape
from trainer_devcluster.apiserver.wire.params import ListParameters, ResourceVersionMatch
from trainer_kube_testing.api_semantics import statuses
from trainer_kube_testing.api_semantics.paging import Lists, Page

REVISION_TIMEOUT = 3.0
"""Seconds for which a request waits for a revision that has not been reached."""


def get(backend: Backend, target: Target) -> Object:
    """The object as it is stored.

    Raises:
        ApiError: 404, there is none.
    """
    obj = backend.storage.get(Partition.of(target.definition.resource), target.key)
    if obj is None:
        raise statuses.not_found(target.definition.resource, target.name)
    return obj


async def list_page(backend: Backend, target: Target, parameters: ListParameters) -> Page[Object]:
    """One page of the selected objects, in the version of the target.

    Raises:
        ApiError: 400 for malformed selectors or tokens, 410 for a past that is forgotten, 504 for a future that does
            not come.
    """
    partition = Partition.of(target.definition.resource)
    selectors = Selectors(target.definition, parameters.label_selector, parameters.field_selector)
    select = selected_in(target, selectors)
    lists = Lists(partial(backend.storage.snapshot, partition), key_of, lambda: backend.storage.revision)
    if parameters.continue_token:
        page = lists.next_page(select, parameters.limit, parameters.continue_token)
    else:
        await reach_revision(backend, parameters.resource_version or 0)
        page = lists.first_page(select, parameters.limit, _exact_revision(parameters))
    page = replace(page, items=[as_requested(target.definition, obj) for obj in page.items])
    if selectors.select_everything:
        return page
    # How many follow is known only without selectors, as in the real server.
    return Page(page.items, page.revision, page.continue_token)


def selected_in(target: Target, selectors: Selectors) -> Callable[[Object], bool]:
    """Whether an object is in the target's namespace and selected."""
    namespace, everything = target.namespace, selectors.select_everything

    def select(obj: Object) -> bool:
        if namespace is not None and namespace_of(obj) != namespace:
            return False
        if everything:
            return True
        return selectors.match(as_requested(target.definition, obj))

    return select


async def reach_revision(backend: Backend, revision: int) -> None:
    """Wait until the storage has reached a revision.

    Raises:
        ApiError: 504, it has not after three seconds.
    """
    if revision <= backend.storage.revision:
        return
    async with move_on_after(backend.clock, REVISION_TIMEOUT) as scope:
        await backend.storage.wait_for_revision(revision)
    if scope.cancelled_caught:
        raise statuses.resource_version_too_large(revision, backend.storage.revision)


def _exact_revision(parameters: ListParameters) -> int | None:
    if parameters.match is ResourceVersionMatch.EXACT:
        return parameters.resource_version
    # A limit with a resource version and no match means that very version, for old clients.
    if parameters.match is None and parameters.limit and parameters.resource_version:
        return parameters.resource_version
    return None


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
            items = [{k: v for k, v in obj.items() if k not in {"apiVersion", "kind"}} for obj in page.items]
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
