"""`HttpClient`: the client protocol over HTTP."""

from __future__ import annotations

from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, Self

import msgspec
import structlog

from trainer.kube.client import (
    DEFAULT_DELETE,
    DEFAULT_LOG,
    EVERYTHING,
    DeleteOptions,
    EventType,
    ListOptions,
    LogOptions,
    ObjectList,
    PatchType,
    Selection,
    WatchEvent,
    WatchOptions,
)
from trainer.kube.errors import TransportError, error_from_status
from trainer.kube.objects import name_of, namespace_of
from trainer.kube.pager import list_all
from trainer.kube.resource import PODS
from trainer.kube.transport import Endpoint, Request, Transport

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
    from types import TracebackType

    from trainer.kube.clock import Clock
    from trainer.kube.credentials import Credentials
    from trainer.kube.objects import Object
    from trainer.kube.resource import Resource

log = structlog.get_logger(__name__)

DEFAULT_LIST = ListOptions()
DEFAULT_WATCH = WatchOptions()

APPLY_CONTENT_TYPE = "application/apply-patch+yaml"

WATCH_IDLE_SLACK = 15.0
"""Seconds that a watch may stay silent beyond its timeout, at which the server ends it, before it is taken for dead."""

_EVENT_TYPES = frozenset(EventType)
_decoder = msgspec.json.Decoder(dict[str, Any])


class HttpClient:
    """Requests to an API server; use it as an async context manager, or get one from `connection.connect`."""

    def __init__(
        self, endpoint: Endpoint, credentials: Credentials, *, user_agent: str, clock: Clock | None = None
    ) -> None:
        self.server = endpoint.server
        self.namespace = endpoint.namespace
        self._transport = Transport(endpoint, credentials, user_agent=user_agent, clock=clock)

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._transport.__aexit__(exc_type, exc, traceback)

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str | int | bool | None] | None = None,
        body: Object | Sequence[Object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Object:
        """Send any request to the server and return its JSON answer, {} if that is empty.

        Args:
            method: HTTP method.
            path: begins with "/", without the path of the server's base URL.
            params: query parameters; None and "" are left out.
            body: sent as JSON.
            headers: further headers; a Content-Type here replaces application/json.

        Raises:
            ApiError: the server refused.
            TransportError: no answer, or one that is not JSON.
        """
        encoded = None if body is None else msgspec.json.encode(body)
        answer = await self._transport.fetch(Request(method, path, params or {}, encoded, headers or {}))
        if not answer:
            return {}
        return _decode(answer, path)

    async def get(
        self, resource: Resource, name: str, namespace: str | None = None, *, subresource: str | None = None
    ) -> Object:
        """See `Client.get`."""
        return await self.request("GET", _object_path(resource, name, namespace, subresource))

    async def list_page(
        self, resource: Resource, selection: Selection = EVERYTHING, options: ListOptions = DEFAULT_LIST
    ) -> ObjectList:
        """See `Client.list_page`."""
        params = _selectors(selection) | {
            "resourceVersion": options.resource_version,
            "limit": options.limit or None,
            "continue": options.continue_token,
        }
        page = await self.request("GET", resource.path(selection.namespace), params=params)
        items: list[Object] = page.get("items") or []
        for item in items:
            item.setdefault("apiVersion", resource.api_version)
            item.setdefault("kind", resource.kind)
        metadata = page.get("metadata") or {}
        return ObjectList(items, metadata.get("resourceVersion") or "", metadata.get("continue") or "")

    async def list(self, resource: Resource, selection: Selection = EVERYTHING) -> ObjectList:
        """See `Client.list`."""
        return await list_all(self, resource, selection)

    @asynccontextmanager
    async def watch(
        self, resource: Resource, selection: Selection = EVERYTHING, options: WatchOptions = DEFAULT_WATCH
    ) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        """See `Client.watch`."""
        params = _selectors(selection) | {
            "watch": True,
            "allowWatchBookmarks": True,
            "resourceVersion": options.resource_version,
            "timeoutSeconds": options.timeout_seconds,
            "sendInitialEvents": options.send_initial_events or None,
            "resourceVersionMatch": "NotOlderThan" if options.send_initial_events else None,
        }
        request = Request("GET", resource.path(selection.namespace), params)
        async with (
            self._transport.stream(request, idle_timeout=options.timeout_seconds + WATCH_IDLE_SLACK) as chunks,
            aclosing(_events(chunks, request.path)) as events,
        ):
            yield events

    async def create(
        self, resource: Resource, obj: Object, *, subresource: str | None = None, field_manager: str | None = None
    ) -> Object:
        """See `Client.create`."""
        if subresource:
            path = _object_path(resource, name_of(obj), namespace_of(obj), subresource)
        else:
            path = _collection_path(resource, namespace_of(obj))
        return await self.request("POST", path, params={"fieldManager": field_manager}, body=obj)

    async def update(self, resource: Resource, obj: Object, *, subresource: str | None = None) -> Object:
        """See `Client.update`."""
        path = _object_path(resource, name_of(obj), namespace_of(obj), subresource)
        return await self.request("PUT", path, body=obj)

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
        """See `Client.patch`."""
        return await self.request(
            "PATCH",
            _object_path(resource, name, namespace, subresource),
            params={"fieldManager": field_manager},
            body=body,
            headers={"Content-Type": patch_type.value},
        )

    async def apply(
        self,
        resource: Resource,
        obj: Object,
        *,
        field_manager: str,
        force: bool = False,
        subresource: str | None = None,
    ) -> Object:
        """See `Client.apply`."""
        return await self.request(
            "PATCH",
            _object_path(resource, name_of(obj), namespace_of(obj), subresource),
            params={"fieldManager": field_manager, "force": force or None},
            body=obj,
            headers={"Content-Type": APPLY_CONTENT_TYPE},
        )

    async def delete(
        self, resource: Resource, name: str, namespace: str | None = None, options: DeleteOptions = DEFAULT_DELETE
    ) -> None:
        """See `Client.delete`."""
        await self.request("DELETE", _object_path(resource, name, namespace), body=_delete_options(options))

    async def delete_collection(
        self, resource: Resource, selection: Selection = EVERYTHING, options: DeleteOptions = DEFAULT_DELETE
    ) -> None:
        """See `Client.delete_collection`."""
        path = _collection_path(resource, selection.namespace)
        await self.request("DELETE", path, params=_selectors(selection), body=_delete_options(options))

    @asynccontextmanager
    async def logs(
        self, pod: str, namespace: str, options: LogOptions = DEFAULT_LOG
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """See `Client.logs`."""
        params = {
            "container": options.container,
            "follow": options.follow or None,
            "previous": options.previous or None,
            "timestamps": options.timestamps or None,
            "sinceTime": options.since_time,
            "tailLines": options.tail_lines,
        }
        # The log is text, while a failure is still a JSON Status.
        headers = {"Accept": "application/json, */*"}
        request = Request("GET", _object_path(PODS, pod, namespace, "log"), params, headers=headers)
        async with self._transport.stream(request) as chunks:
            yield chunks


def _object_path(resource: Resource, name: str, namespace: str | None, subresource: str | None = None) -> str:
    if not name:
        raise ValueError(f"a request for one of {resource.qualified_name} needs a name")
    _check_namespace(resource, namespace)
    return resource.path(namespace, name, subresource)


def _collection_path(resource: Resource, namespace: str | None) -> str:
    _check_namespace(resource, namespace)
    return resource.path(namespace)


def _check_namespace(resource: Resource, namespace: str | None) -> None:
    if resource.namespaced and not namespace:
        raise ValueError(f"{resource.qualified_name} are namespaced: the request needs a namespace")


def _selectors(selection: Selection) -> dict[str, str | int | bool | None]:
    return {"labelSelector": selection.label_selector, "fieldSelector": selection.field_selector}


def _delete_options(options: DeleteOptions) -> Object:
    body: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if options.propagation is not None:
        body["propagationPolicy"] = options.propagation.value
    if options.grace_period_seconds is not None:
        body["gracePeriodSeconds"] = options.grace_period_seconds
    if options.uid is not None:
        body["preconditions"] = {"uid": options.uid}
    return body


def _decode(body: bytes, path: str) -> Object:
    try:
        return _decoder.decode(body)
    except msgspec.DecodeError as error:
        raise TransportError(f"the answer to {path} is not a JSON object: is this a Kubernetes API server?") from error


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Lines of any length, without their ends."""
    pending: list[bytes] = []
    async for chunk in chunks:
        *complete, rest = chunk.split(b"\n")
        for part in complete:
            yield b"".join((*pending, part))
            pending.clear()
        if rest:
            pending.append(rest)
    if pending:
        yield b"".join(pending)


async def _events(chunks: AsyncIterator[bytes], path: str) -> AsyncGenerator[WatchEvent, None]:
    async with aclosing(_lines(chunks)) as lines:
        async for line in lines:
            if not line.strip():
                continue
            event = _decode(line, path)
            kind, obj = event.get("type"), event.get("object") or {}
            if kind == "ERROR":
                raise error_from_status(obj.get("code") or 500, obj)
            if kind not in _EVENT_TYPES:
                log.warning("skipped watch event of unknown type", type=kind, path=path)
                continue
            yield WatchEvent(EventType(kind), obj)
