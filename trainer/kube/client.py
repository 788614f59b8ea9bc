"""The client protocol: everything that the machinery and its users ask of an API server.

It is the wire, and caches nothing: cached reads are a `Lister`'s. Of controller-runtime's client these are left out:
dry runs of anything but creations, since a controller that only tries is a test's business; field validation, since
the server's default is to warn and its warnings are logged; wrappers that add a field owner or a namespace, since each
request names its own; retries on conflict and create-or-update, since server-side apply needs neither and a reconcile
that met a conflict is repeated with what is there by then.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, TypeAlias, runtime_checkable

import msgspec

from trainer.kube.objects import Object, ObjectKey, name_of, namespace_of
from trainer.kube.resource import Resource
from trainer.kube.selection import EVERYTHING, Selection

RawJson: TypeAlias = bytes | bytearray | memoryview | msgspec.Raw
"""Encoded JSON, which may be part of a larger buffer."""

_object = msgspec.json.Decoder(dict[str, Any])


class PatchType(StrEnum):
    """Content types of a PATCH request other than apply, which is `Client.apply`."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"


class Propagation(StrEnum):
    """How a deletion treats the dependents of the object (Kubernetes documentation, "Garbage Collection")."""

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
    """One event of a watch, its object still encoded; an ERROR event is raised as the typed error instead."""

    type: EventType
    raw: RawJson
    """JSON of the object; of a bookmark only kind and resource version are worth reading."""

    @classmethod
    def of(cls, type: EventType, obj: Mapping[str, Any]) -> WatchEvent:  # noqa: A002
        """An event about a decoded object."""
        return cls(type, msgspec.json.encode(obj))

    @property
    def object(self) -> Object:
        """The object, decoded anew each time."""
        return _object.decode(self.raw)


@dataclass(frozen=True, slots=True)
class ObjectList:
    """One page of a list, or all of it; its items are encoded until somebody reads them."""

    raw_items: Sequence[RawJson]
    """JSON of each object as the server sent it; items of built-in kinds lack `apiVersion` and `kind`."""
    resource_version: str
    continue_token: str = ""
    """Token of the next page; empty on the last one."""
    api_version: str = ""
    kind: str = ""

    @property
    def items(self) -> list[Object]:
        """The objects, decoded anew each time, with `apiVersion` and `kind` even where the server leaves them out."""
        types = {"apiVersion": self.api_version, "kind": self.kind} if self.kind else {}
        return [types | _object.decode(raw) for raw in self.raw_items]


@dataclass(frozen=True, slots=True)
class LogOptions:
    """The part of a container's log to read (query parameters of pods/log)."""

    container: str | None = None
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    since_time: str | None = None
    """RFC 3339; only lines after this moment. Kubelets and API servers know whole seconds, and drop the fraction."""
    tail_lines: int | None = None
    pace: float = 0
    """Seconds between two reads of the stream; what arrives meanwhile waits with the kernel, and with the server.

    Not sent. Many streams of a few bytes each are cheaper to read now and then than byte by byte. Default: 0, read
    whatever arrives at once.
    """
    idle_timeout: float | None = None
    """Seconds without a byte after which the connection is taken for dead, and `TransportError` raised.

    Not sent. Default: None, since a silent container is nothing unusual.
    """


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """How to delete; the defaults leave everything to the server."""

    propagation: Propagation | None = None
    grace_period_seconds: int | None = None
    uid: str | None = None
    """Precondition: delete only this incarnation of the name; otherwise `ConflictError`."""
    resource_version: str | None = None
    """Precondition: delete only this state of the object; otherwise `ConflictError`."""


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """Where a watch starts and how long it lasts."""

    resource_version: str = ""
    timeout_seconds: int = 300
    """The server ends the watch after this time; a clean end, not an error."""
    idle_timeout: float | None = None
    """Seconds without a byte after which the connection is taken for dead. Default: somewhat longer than the watch."""
    send_initial_events: bool = False
    """Stream the present state first and end it with an annotated bookmark (KEP-3157); the server may refuse (422)."""


INITIAL_EVENTS_END = "k8s.io/initial-events-end"
"""Annotation with value "true" of the bookmark that ends the initial events of a streaming list (KEP-3157)."""

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


DEFAULT_LIST = ListOptions()
DEFAULT_WATCH = WatchOptions()


class Verb(StrEnum):
    """The verb of an `ObjectRequest`."""

    GET = "get"
    CREATE = "create"
    UPDATE = "update"
    PATCH = "patch"
    APPLY = "apply"
    DELETE = "delete"
    DELETE_COLLECTION = "deletecollection"


@dataclass(frozen=True, slots=True)
class ObjectRequest:
    """A request about one object, or the deletion of a collection; the methods of `Client` say what the fields mean."""

    verb: Verb
    resource: Resource
    name: str = ""
    namespace: str = ""
    body: Object | Sequence[Object] | None = None
    subresource: str | None = None
    field_manager: str | None = None
    force: bool = False
    patch_type: PatchType = PatchType.MERGE
    selection: Selection = EVERYTHING
    options: DeleteOptions = DEFAULT_DELETE
    dry_run: bool = False
    """Whether the server shall answer as if it created the object, admission included, and store nothing."""

    @property
    def key(self) -> ObjectKey:
        """Key of the object."""
        return ObjectKey(self.namespace, self.name)


class Client(Protocol):
    """Requests to one API server; every method raises `trainer.kube.errors` and may be called concurrently.

    Implementations derive from it and have `send`, `list_page`, `list`, `watch` and `logs`; the other methods send.
    """

    async def send(self, request: ObjectRequest) -> Object | None:
        """Send a request and return the object that the server answers; only a deletion may have none."""

    async def list_page(
        self, resource: Resource, selection: Selection = EVERYTHING, options: ListOptions = DEFAULT_LIST
    ) -> ObjectList:
        """Read one page of objects."""

    async def list(self, resource: Resource, selection: Selection = EVERYTHING) -> ObjectList:
        """Read all objects, in pages of 500, as one consistent list."""

    def watch(
        self, resource: Resource, selection: Selection = EVERYTHING, options: WatchOptions = DEFAULT_WATCH
    ) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        """Stream changes, bookmarks included, until the server ends the watch.

        Entering the context sends the request. A broken connection raises `TransportError` from the iterator, an ERROR
        event its typed error (`GoneError` when the resource version is too old).
        """

    def logs(
        self, pod: str, namespace: str, options: LogOptions = DEFAULT_LOG
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Stream a container's log in chunks as they arrive; chunks do not respect line ends."""

    async def get(
        self, resource: Resource, name: str, namespace: str | None = None, *, subresource: str | None = None
    ) -> Object:
        """Read one object, or a subresource of it such as `scale`."""
        return _answered(
            await self.send(ObjectRequest(Verb.GET, resource, name, namespace or "", subresource=subresource))
        )

    async def create(
        self, resource: Resource, obj: Object, *, subresource: str | None = None, field_manager: str | None = None
    ) -> Object:
        """Store a new object in the namespace that its metadata names.

        With a subresource, post `obj` to that of the object with its name, such as a Binding to `binding` of a pod.
        """
        request = _about(Verb.CREATE, resource, obj, subresource, field_manager)
        return _answered(await self.send(request))

    async def update(self, resource: Resource, obj: Object, *, subresource: str | None = None) -> Object:
        """Replace an object; `ConflictError` when its resourceVersion is stale."""
        return _answered(await self.send(_about(Verb.UPDATE, resource, obj, subresource)))

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
        request = ObjectRequest(
            Verb.PATCH,
            resource,
            name,
            namespace or "",
            body,
            subresource,
            field_manager,
            patch_type=patch_type,
        )
        return _answered(await self.send(request))

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
        return _answered(await self.send(_about(Verb.APPLY, resource, obj, subresource, field_manager, force=force)))

    async def delete(
        self, resource: Resource, name: str, namespace: str | None = None, options: DeleteOptions = DEFAULT_DELETE
    ) -> Object | None:
        """Delete one object; returns when the deletion is accepted, which may be before the object is gone.

        Returns:
            The object as the server answered it, with a deletionTimestamp if it still exists; None where the server
            answered with a Status, as it does for most objects that are gone at once.
        """
        return await self.send(ObjectRequest(Verb.DELETE, resource, name, namespace or "", options=options))

    async def delete_collection(
        self, resource: Resource, selection: Selection = EVERYTHING, options: DeleteOptions = DEFAULT_DELETE
    ) -> None:
        """Delete all selected objects of one namespace (or of a cluster-scoped resource)."""
        namespace = selection.namespace or ""
        await self.send(
            ObjectRequest(Verb.DELETE_COLLECTION, resource, namespace=namespace, selection=selection, options=options)
        )


@runtime_checkable
class RawClient(Protocol):
    """A client that can send requests beyond the typed ones."""

    async def request(self, method: str, path: str) -> Object:
        """Send a request without a body and return the answer."""


def _about(
    verb: Verb,
    resource: Resource,
    obj: Object,
    subresource: str | None = None,
    field_manager: str | None = None,
    *,
    force: bool = False,
) -> ObjectRequest:
    return ObjectRequest(verb, resource, name_of(obj), namespace_of(obj), obj, subresource, field_manager, force)


def _answered(answer: Object | None) -> Object:
    assert answer is not None
    return answer
