"""`FakeClient`: an API server in memory behind the client protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import aclosing, asynccontextmanager
from typing import Any, TypeVar

import anyio.lowlevel

from trainer.kube import resource as builtin
from trainer.kube.client import (
    DEFAULT_LIST,
    DEFAULT_LOG,
    DEFAULT_WATCH,
    Client,
    ListOptions,
    LogOptions,
    ObjectList,
    ObjectRequest,
    Verb,
    WatchEvent,
    WatchOptions,
)
from trainer.kube.clock import Clock, SystemClock
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.pager import list_all
from trainer.kube.resource import Resource
from trainer.kube.selection import EVERYTHING, Selection
from trainer_kube_testing.api_semantics import statuses
from trainer_kube_testing.container_logs import FakeLog, LogStream
from trainer_kube_testing.faults import Faults
from trainer_kube_testing.recorded import RecordedRequest
from trainer_kube_testing.server import UNKNOWN, FakeServer
from trainer_kube_testing.storage import json_copy, list_page
from trainer_kube_testing.watches import FakeWatch

_T = TypeVar("_T")

_BUILT_IN = tuple(value for value in vars(builtin).values() if isinstance(value, Resource))


class FakeClient(Client):
    """Implements `Client` on objects in memory and records every request.

    `trainer_kube_testing.server` says what it does as a real server does, and what not; `faults` makes it misbehave.
    Its watches last until a fault or the client ends them, whatever their timeout.

        client = FakeClient({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "ns"}})
        await client.delete(PODS, "p", "ns")
        assert [request.verb for request in client.requests] == ["delete"]

    Args:
        objects: what exists at the start, status included; apiVersion and kind must belong to a known resource.
        resources: served besides those of `trainer.kube.resource`; requests for others get `NotFoundError`.
        clock: for timestamps in metadata and of requests; default: that of the machine.
        server: the one to use, when it is that of another client; see `peer`.
    """

    def __init__(
        self,
        *objects: Object,
        resources: Iterable[Resource] = (),
        clock: Clock | None = None,
        fake_server: FakeServer | None = None,
    ) -> None:
        self.fake_server = fake_server or FakeServer((*_BUILT_IN, *resources), clock or SystemClock())
        """The server behind this client."""
        self.requests: list[RecordedRequest] = []
        """All that this client has asked, failures included."""
        self.faults = Faults(self.fake_server.storage, compact=self.fake_server.storage.compact)
        """What goes wrong between this client and the server."""
        for obj in objects:
            self.add(obj)

    def peer(self) -> FakeClient:
        """Another client of the same server, with requests and faults of its own, as another process would be."""
        return FakeClient(fake_server=self.fake_server)

    @property
    def resource_version(self) -> str:
        """The resource version of the latest change."""
        return str(self.fake_server.storage.version)

    def serve(self, resource: Resource) -> None:
        """Serve one more resource, as when its definition is installed."""
        self.fake_server.serve(resource)

    def withdraw(self, resource: Resource) -> None:
        """Serve a resource no more, as when its definition is deleted: its objects go, and then its watches end."""
        self.fake_server.withdraw(resource)

    def close_gate(self, resource: Resource, field: str, *, drops: bool = False) -> None:
        """Switch off the feature gate of a field, such as `spec.resourceClaims`.

        Requests that bring the field are refused as invalid, or with `drops` it is dropped in silence; objects that
        have it keep it. The path names no items of lists: each counts.
        """
        self.fake_server.gates.close(resource, field, drops=drops)

    def open_gate(self, resource: Resource, field: str) -> None:
        """Switch it on again, as all are at the start."""
        self.fake_server.gates.open(resource, field)

    def add(self, obj: Object) -> Object:
        """Store or replace an object as somebody else would, status included, without recording a request.

        Raises:
            ValueError: no known resource has this apiVersion and kind.
        """
        return self.fake_server.add(json_copy(obj))

    def remove(self, resource: Resource, name: str, namespace: str = "") -> None:
        """Remove an object at once, whatever its finalizers, without recording a request.

        Raises:
            NotFoundError: it does not exist.
        """
        storage = self.fake_server.storage
        storage.remove(resource, storage.get(resource, ObjectKey(namespace, name)).obj)

    def find(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """A stored object, as a copy, without recording a request."""
        stored = self.fake_server.storage.find(resource, ObjectKey(namespace, name))
        return stored.copy() if stored is not None else None

    def objects(self, resource: Resource, selection: Selection = EVERYTHING) -> list[Object]:
        """All stored objects of a resource, by namespace and name, as copies, without recording a request."""
        return [stored.copy() for stored in self.fake_server.storage.select(resource, selection)]

    def log(self, pod: str, namespace: str, container: str | None = None) -> FakeLog:
        """The log of a running container, which the test writes; None stands for all containers without their own."""
        logs = self.fake_server.logs
        if (namespace, pod, container) not in logs:
            logs[namespace, pod, container] = FakeLog(self.fake_server.clock)
        return logs[namespace, pod, container]

    def requests_of(self, *verbs: str) -> list[RecordedRequest]:
        """The recorded requests with one of these verbs."""
        return [request for request in self.requests if request.verb in verbs]

    def compact(self) -> None:
        """Forget the history: watches from an earlier resource version and older continue tokens get `GoneError`."""
        self.fake_server.storage.compact()

    async def send(self, request: ObjectRequest) -> Object | None:
        """See `Client.send`.

        As for most kinds, a status in a created object is dropped. `LISTS` of `trainer_kube_testing.server` says how
        lists merge. Nothing is garbage-collected, so an object with dependents in the foreground stays.
        """
        verb = request.verb
        sent = json_copy(request.body)
        key = _key(request.resource, request.namespace, request.name)
        is_deletion = verb in {Verb.DELETE, Verb.DELETE_COLLECTION}
        recorded = self._request(
            verb.value,
            request.resource,
            key,
            request.subresource,
            request.options if is_deletion else sent,
            field_manager=request.field_manager,
            selection=request.selection if verb is Verb.DELETE_COLLECTION else None,
            dry_run=request.dry_run,
        )
        return await self._answer(recorded, lambda: self._act(request, key, sent))

    def _act(self, request: ObjectRequest, key: ObjectKey, sent: Any) -> Object | None:
        fake_server, resource, subresource = self.fake_server, request.resource, request.subresource
        manager = request.field_manager or UNKNOWN
        match request.verb:
            case Verb.GET:
                return fake_server.get(resource, key, subresource)
            case Verb.CREATE:
                return fake_server.create(resource, key, sent, subresource, manager, dry_run=request.dry_run)
            case Verb.UPDATE:
                return fake_server.update(resource, key, sent, subresource, manager)
            case Verb.PATCH:
                return fake_server.patch(resource, key, sent, request.patch_type, subresource, manager=manager)
            case Verb.APPLY:
                return fake_server.apply(resource, key, sent, manager, subresource, force=request.force)
            case Verb.DELETE:
                return fake_server.delete(resource, key, request.options)
            case Verb.DELETE_COLLECTION:
                fake_server.delete_collection(resource, request.selection, request.options)
                return None

    async def list_page(
        self, resource: Resource, selection: Selection = EVERYTHING, options: ListOptions = DEFAULT_LIST
    ) -> ObjectList:
        """See `Client.list_page`."""
        request = self._request("list", resource, _all_in(selection), body=options, selection=selection)
        return await self._answer(request, lambda: list_page(self.fake_server.storage, resource, selection, options))

    async def list(self, resource: Resource, selection: Selection = EVERYTHING) -> ObjectList:
        """See `Client.list`."""
        return await list_all(self, resource, selection)

    @asynccontextmanager
    async def watch(
        self, resource: Resource, selection: Selection = EVERYTHING, options: WatchOptions = DEFAULT_WATCH
    ) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        """See `Client.watch`."""
        request = self._request("watch", resource, _all_in(selection), body=options, selection=selection)
        watch = await self._answer(request, lambda: self._open_watch(resource, selection, options))
        with self.faults.reaching(watch):
            async with aclosing(watch.events()) as events:
                yield events

    @asynccontextmanager
    async def logs(
        self, pod: str, namespace: str, options: LogOptions = DEFAULT_LOG
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """See `Client.logs`; a container without a log has written nothing and ended."""
        key = ObjectKey(namespace, pod)
        request = self._request("log", builtin.PODS, key, "log", options)
        stream = await self._answer(request, lambda: self._open_log(key, options))
        with self.faults.reaching(stream):
            async with aclosing(stream.chunks()) as chunks:
                yield chunks

    def _request(
        self,
        verb: str,
        resource: Resource,
        key: ObjectKey,
        subresource: str | None = "",
        body: object = None,
        *,
        field_manager: str | None = "",
        selection: Selection | None = None,
        dry_run: bool = False,
    ) -> RecordedRequest:
        time = self.fake_server.clock.monotonic()
        return RecordedRequest(
            verb,
            resource,
            *key,
            subresource or "",
            body,
            field_manager or "",
            selection=selection,
            dry_run=dry_run,
            time=time,
        )

    async def _answer(self, request: RecordedRequest, act: Callable[[], _T]) -> _T:
        """Carry out a request as the script of faults has it."""
        await anyio.lowlevel.checkpoint()
        self.requests.append(request)
        await self.faults.before_request(request)
        if request.resource not in self.fake_server.resources.values():
            raise statuses.no_such_resource()
        try:
            return act()
        finally:
            await self.faults.after_request(request)

    def _open_watch(self, resource: Resource, selection: Selection, options: WatchOptions) -> FakeWatch:
        start = self.fake_server.start_watch(resource, selection, options, self.faults.streaming_lists)
        return FakeWatch(self.fake_server.storage.collection(resource), selection, start, self.faults.delivery)

    def _open_log(self, pod: ObjectKey, options: LogOptions) -> LogStream:
        self.fake_server.storage.get(builtin.PODS, pod)
        logs = self.fake_server.logs
        log = logs.get((*pod, options.container)) or logs.get((*pod, None))
        if log is None:
            log = FakeLog(self.fake_server.clock)
            log.end()
        return log.open(options, self.faults.log_delivery, pod.name)


def _all_in(selection: Selection) -> ObjectKey:
    return ObjectKey(selection.namespace or "", "")


def _key(resource: Resource, namespace: str | None, name: str) -> ObjectKey:
    """What a client puts into the URL, with the refusal of one that it could not build."""
    if not resource.namespaced:
        return ObjectKey("", name)
    if not namespace:
        raise ValueError(f"{resource.qualified_name} are namespaced: the request needs a namespace")
    return ObjectKey(namespace, name)
