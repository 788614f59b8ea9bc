"""`HttpClient`: the client protocol over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from typing import Any

import anyio.to_thread
import msgspec

from trainer.kube.client import (
    DEFAULT_LIST,
    DEFAULT_LOG,
    DEFAULT_WATCH,
    Client,
    DeleteOptions,
    ListOptions,
    LogOptions,
    ObjectList,
    ObjectRequest,
    Verb,
    WatchEvent,
    WatchOptions,
)
from trainer.kube.errors import NotFoundError, TransportError
from trainer.kube.json_text import decode_outer
from trainer.kube.logger import get_logger
from trainer.kube.names import is_path_segment
from trainer.kube.objects import Object
from trainer.kube.pager import list_all
from trainer.kube.remote_command import CommandClient, CommandOptions, RemoteCommand
from trainer.kube.resource import NAMESPACES, PODS, Resource
from trainer.kube.rest.command_channels import PROTOCOLS, CommandChannels
from trainer.kube.rest.credentials import FixedCredentials
from trainer.kube.rest.request import Request
from trainer.kube.rest.transport import Transport
from trainer.kube.rest.watch_stream import read_events
from trainer.kube.selection import EVERYTHING, Selection

log = get_logger(__name__)

APPLY_CONTENT_TYPE = "application/apply-patch+yaml"

WATCH_IDLE_SLACK = 15.0
"""Seconds that a watch may stay silent beyond its timeout, at which the server ends it, before it is taken for dead."""

_SHOWN = 100
"""Characters of a name that a message quotes."""

_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

_METHODS = {
    Verb.GET: "GET",
    Verb.CREATE: "POST",
    Verb.UPDATE: "PUT",
    Verb.PATCH: "PATCH",
    Verb.APPLY: "PATCH",
    Verb.DELETE: "DELETE",
    Verb.DELETE_COLLECTION: "DELETE",
}

_object_decoder = msgspec.json.Decoder(dict[str, Any])


class _ListMeta(msgspec.Struct):
    resource_version: str = msgspec.field(default="", name="resourceVersion")
    continue_token: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct):
    """The answer to a list, whose items stay encoded."""

    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[msgspec.Raw] | None = None


_page_decoder = msgspec.json.Decoder(_Page)


class HttpClient(Client, CommandClient):
    """Requests to an API server over an open connection; `connection.connect` gives one."""

    def __init__(self, transport: Transport) -> None:
        self.server = transport.endpoint.server
        self.namespace = transport.endpoint.namespace
        self.context = transport.endpoint.context
        self._transport = transport

    def acting_as(self, token: str) -> HttpClient:
        """A client for the owner of a bearer token, over the same connections; good as long as this one is open."""
        credentials = FixedCredentials(f"Bearer {token}", description="the token of the request; log in with another")
        return HttpClient(self._transport.acting_as(credentials))

    def impersonating(self, user: Object) -> HttpClient:
        """A client that acts for a user, given as UserInfo with `username` and `groups`, by our right to impersonate.

        Kubernetes documentation, "User Impersonation".
        """
        groups = [("Impersonate-Group", group) for group in user.get("groups") or ()]
        return HttpClient(self._transport.acting_as(impersonation=[("Impersonate-User", user["username"]), *groups]))

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

        The path begins with "/" and lacks that of the server's base URL. Parameters that are None or "" are left out; a
        Content-Type in `headers` replaces application/json.

        Raises:
            ApiError: the server refused.
            TransportError: no answer, or one that is not JSON.
        """
        encoded = None if body is None else msgspec.json.encode(body)
        answer = await self._transport.fetch(Request(method, path, params or {}, encoded, headers or {}))
        if not answer:
            return {}
        with _decoding(path):
            return _object_decoder.decode(answer)

    async def read(self, path: str) -> bytes:
        """The answer to a GET that is no JSON, such as that of /readyz.

        Raises:
            ApiError: the server refused.
            TransportError: no answer.
        """
        return await self._transport.fetch(Request("GET", path, {}))

    async def send(self, request: ObjectRequest) -> Object | None:
        """See `Client.send`."""
        verb, resource = request.verb, request.resource
        params: dict[str, str | int | bool | None] = {
            "fieldManager": request.field_manager,
            "force": request.force or None,
            "dryRun": "All" if request.dry_run else None,
        }
        body, content_type = request.body, None
        match verb:
            case Verb.PATCH:
                content_type = request.patch_type.value
            case Verb.APPLY:
                content_type = APPLY_CONTENT_TYPE
            case Verb.DELETE | Verb.DELETE_COLLECTION:
                params, body = _selectors(request.selection), _delete_options(request.options)
        if verb is Verb.DELETE_COLLECTION or (verb is Verb.CREATE and not request.subresource):
            _check_namespace(resource, request.namespace)
            path = resource.path(request.namespace)
        else:
            path = _object_path(resource, request.name, request.namespace, request.subresource)
        headers = {} if content_type is None else {"Content-Type": content_type}
        answer = await self.request(_METHODS[verb], path, params=params, body=body, headers=headers)
        is_deletion = verb in {Verb.DELETE, Verb.DELETE_COLLECTION}
        return None if is_deletion and answer.get("kind") != resource.kind else answer

    async def list_page(
        self, resource: Resource, selection: Selection = EVERYTHING, options: ListOptions = DEFAULT_LIST
    ) -> ObjectList:
        """See `Client.list_page`."""
        params = _selectors(selection) | {
            "resourceVersion": options.resource_version,
            "limit": options.limit or None,
            "continue": options.continue_token,
        }
        headers = {"Accept": _METADATA_LIST} if selection.metadata_only else {}
        request = Request("GET", resource.path(selection.namespace), params, headers=headers)
        answer = await self._transport.fetch(request)
        with _decoding(request.path):
            # A server that answers from its watch cache ignores the limit: 10,000 pods are 80 MB.
            page = await anyio.to_thread.run_sync(decode_outer, _page_decoder, answer)
        metadata = page.metadata
        return ObjectList(
            page.items or [], metadata.resource_version, metadata.continue_token, resource.api_version, resource.kind
        )

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
        headers = {"Accept": _METADATA} if selection.metadata_only else {}
        request = Request("GET", resource.path(selection.namespace), params, headers=headers)
        idle_timeout = options.idle_timeout or options.timeout_seconds + WATCH_IDLE_SLACK
        async with (
            self._transport.stream(request, idle_timeout=idle_timeout) as chunks,
            aclosing(read_events(chunks, request.path)) as events,
        ):
            yield events

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
        async with self._transport.stream(request, idle_timeout=options.idle_timeout, pace=options.pace) as chunks:
            yield chunks

    @asynccontextmanager
    async def execute(self, pod: str, namespace: str, options: CommandOptions) -> AsyncIterator[RemoteCommand]:
        """See `CommandClient.execute`."""
        params = {
            "command": options.command,
            "container": options.container,
            "stdin": options.stdin or None,
            "stdout": True,
            "stderr": None if options.tty else True,
            "tty": options.tty or None,
        }
        request = Request("GET", _object_path(PODS, pod, namespace, "exec"), params)
        async with self._transport.web_socket(request, PROTOCOLS) as socket:
            yield CommandChannels(socket, f"{namespace}/{pod}", self._transport.clock)


def _object_path(resource: Resource, name: str, namespace: str | None, subresource: str | None = None) -> str:
    _check_namespace(resource, namespace)
    _check_name(resource, name)
    return resource.path(namespace, name, subresource)


def _check_namespace(resource: Resource, namespace: str | None) -> None:
    if resource.namespaced and not namespace:
        raise ValueError(f"{resource.qualified_name} are namespaced: the request needs a namespace")
    if namespace:
        _check_name(NAMESPACES, namespace)


def _check_name(resource: Resource, name: str) -> None:
    """A name is mostly made of what a user wrote: one that no object can have must not lead to another object.

    Raises:
        NotFoundError: as for any other name that no object has, so that no caller needs a case of its own.
    """
    if not is_path_segment(name):
        shown = ascii(name[:_SHOWN])[1:-1]
        raise NotFoundError(404, f'{resource.qualified_name} "{shown}" not found: no object can have this name')


def _selectors(selection: Selection) -> dict[str, str | int | bool | None]:
    return {"labelSelector": selection.label_selector, "fieldSelector": selection.field_selector}


def _delete_options(options: DeleteOptions) -> Object:
    body: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if options.propagation is not None:
        body["propagationPolicy"] = options.propagation.value
    if options.grace_period_seconds is not None:
        body["gracePeriodSeconds"] = options.grace_period_seconds
    preconditions = {"uid": options.uid, "resourceVersion": options.resource_version}
    if stated := {name: value for name, value in preconditions.items() if value is not None}:
        body["preconditions"] = stated
    return body


@contextmanager
def _decoding(path: str) -> Iterator[None]:
    try:
        yield
    except RecursionError:
        raise TransportError(f"the answer to {path} is nested too deeply") from None
    except msgspec.DecodeError as error:
        raise TransportError(
            f"the answer to {path} is cut off, or not from a Kubernetes API server (check the URL): {error}"
        ) from error
