"""The client protocol: everything that the machinery and its users ask of an API server."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from contextlib import AbstractAsyncContextManager

    from trainer.kube.objects import Object
    from trainer.kube.resource import Resource


class PatchType(StrEnum):
    """Content types of a PATCH request other than apply, which is `Client.apply`."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"


class Propagation(StrEnum):
    """What a deletion does with the dependents of the object (Kubernetes documentation, "Garbage Collection")."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


class EventType(StrEnum):
    """Type of a watch event."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One event of a watch; an ERROR event is raised as the typed error instead."""

    type: EventType
    object: Object


@dataclass(frozen=True, slots=True)
class ObjectList:
    """One page of a list; items carry `apiVersion` and `kind` even where the server leaves them out."""

    items: list[Object]
    resource_version: str
    continue_token: str = ""
    """Not empty when more pages follow."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of a resource a list or watch is about."""

    namespace: str | None = None
    """None selects all namespaces."""
    label_selector: str = ""
    field_selector: str = ""


@dataclass(frozen=True, slots=True)
class LogOptions:
    """What part of a container's log to read (pods/log query parameters)."""

    container: str | None = None
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    since_time: str | None = None
    """RFC 3339; only lines after this moment."""
    tail_lines: int | None = None


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """How to delete; the defaults leave everything to the server."""

    propagation: Propagation | None = None
    grace_period_seconds: int | None = None
    uid: str | None = None
    """Precondition: delete only this incarnation of the name; otherwise `ConflictError`."""


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """Where a watch starts and how long it lasts."""

    resource_version: str = ""
    timeout_seconds: int = 300
    """The server ends the watch after this time; a clean end, not an error."""
    send_initial_events: bool = False
    """Stream the present state first and end it with an annotated bookmark (KEP-3157); the server may refuse (422)."""


EVERYTHING = Selection()
DEFAULT_DELETE = DeleteOptions()
DEFAULT_LOG = LogOptions()


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Consistency and paging of one list request."""

    resource_version: str = ""
    """"" is a quorum read, "0" allows any cached state."""
    limit: int = 0
    """Page size; 0 asks for everything at once."""
    continue_token: str = ""


class Client(Protocol):
    """Requests to one API server; every method raises `trainer.kube.errors` and may be called concurrently."""

    async def get(
        self, resource: Resource, name: str, namespace: str | None = None, *, subresource: str | None = None
    ) -> Object:
        """Read one object, or a subresource of it such as `scale`."""

    async def list_page(
        self, resource: Resource, selection: Selection = EVERYTHING, options: ListOptions = ListOptions()
    ) -> ObjectList:
        """Read one page of objects."""

    async def list(self, resource: Resource, selection: Selection = EVERYTHING) -> ObjectList:
        """Read all objects, in pages of 500, as one consistent list."""

    def watch(
        self, resource: Resource, selection: Selection = EVERYTHING, options: WatchOptions = WatchOptions()
    ) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        """Stream changes, bookmarks included, until the server ends the watch.

        Entering the context sends the request. A broken connection raises `TransportError` from the iterator, an ERROR
        event its typed error (`GoneError` when the resource version is too old).
        """

    async def create(
        self, resource: Resource, obj: Object, *, subresource: str | None = None, field_manager: str | None = None
    ) -> Object:
        """Store a new object in the namespace that its metadata names.

        With a subresource, post `obj` to that of the object with its name, such as a Binding to `binding` of a pod.
        """

    async def update(self, resource: Resource, obj: Object, *, subresource: str | None = None) -> Object:
        """Replace an object; `ConflictError` when its resourceVersion is stale."""

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Object | Sequence[Object],
        namespace: str | None = None,
        *,
        patch_type: PatchType = PatchType.MERGE,
        subresource: str | None = None,
        field_manager: str | None = None,
    ) -> Object:
        """Change parts of an object."""

    async def apply(
        self,
        resource: Resource,
        obj: Object,
        *,
        field_manager: str,
        force: bool = False,
        subresource: str | None = None,
    ) -> Object:
        """Server-side apply: create the object or make the fields in `obj` ours; `ConflictError` without `force`."""

    async def delete(
        self, resource: Resource, name: str, namespace: str | None = None, options: DeleteOptions = DEFAULT_DELETE
    ) -> None:
        """Delete one object; returns when the deletion is accepted, which may be before the object is gone."""

    async def delete_collection(
        self, resource: Resource, selection: Selection = EVERYTHING, options: DeleteOptions = DEFAULT_DELETE
    ) -> None:
        """Delete all selected objects of one namespace (or of a cluster-scoped resource)."""

    def logs(
        self, pod: str, namespace: str, options: LogOptions = DEFAULT_LOG
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Stream a container's log in chunks as they arrive; chunks do not respect line ends."""
