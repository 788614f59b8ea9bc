"""The client that a manager gives to its controllers: writes only while it may, and its cache shows what it wrote.

An answer is about the object that the request met. Another may have taken its name by the time at which the answer is
read, so a deletion is reported with the uid that was known when the request was sent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Protocol

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
from trainer.kube.errors import NotFoundError
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.resource import Resource
from trainer.kube.selection import EVERYTHING, Selection


class Fence(Protocol):
    """Lets writes pass only while no other process may be writing."""

    def writing(self) -> AbstractAsyncContextManager[None]:
        """Surrounds one write.

        Raises:
            LeadershipLostError: on entering, when the lease is not held; within, at the moment at which the lease could
                belong to another, after the write has been cancelled.
        """


class WriteObserver(Protocol):
    """Is notified of what this process writes."""

    def wrote(self, resource: Resource, obj: Object) -> None:
        """The server has answered a create, update, patch or apply with this."""

    def known_uid(self, resource: Resource, key: ObjectKey) -> str:
        """Uid of the object that readers of the cache see under the key; "" when they see none."""

    def deleted(self, resource: Resource, key: ObjectKey, uid: str, answer: Object | None) -> None:
        """The server has accepted a deletion, or does not find what is to be changed.

        Args:
            resource: what the object is.
            key: its key.
            uid: its uid; when the answer arrives, another object may have taken the name.
            answer: as that of `Client.delete`; None: the object is gone.
        """


class ManagedClient(Client):
    """A `Client` whose writes pass a fence and are reported to an observer; reads go straight to the server.

    Deletions of collections pass the fence and are not reported, since the server does not say what they delete.
    """

    def __init__(self, client: Client, *, fence: Fence | None = None, writes: WriteObserver | None = None) -> None:
        self._client = client
        self._fence = fence
        self._writes = writes

    async def send(self, request: ObjectRequest) -> Object | None:
        """See `Client.send`."""
        if request.verb is Verb.GET:
            return await self._client.send(request)
        if request.verb is Verb.DELETE_COLLECTION:
            async with self._fenced():
                return await self._client.send(request)
        resource, key = request.resource, request.key
        async with self._writing(resource, key) as known_uid:
            answer = await self._client.send(request)
        if self._writes is not None:
            if request.verb is Verb.DELETE:
                self._writes.deleted(resource, key, request.options.uid or known_uid, answer)
            elif answer is not None:
                self._writes.wrote(resource, answer)
        return answer

    async def list_page(
        self, resource: Resource, selection: Selection = EVERYTHING, options: ListOptions = DEFAULT_LIST
    ) -> ObjectList:
        """See `Client.list_page`."""
        return await self._client.list_page(resource, selection, options)

    async def list(self, resource: Resource, selection: Selection = EVERYTHING) -> ObjectList:
        """See `Client.list`."""
        return await self._client.list(resource, selection)

    def watch(
        self, resource: Resource, selection: Selection = EVERYTHING, options: WatchOptions = DEFAULT_WATCH
    ) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        """See `Client.watch`."""
        return self._client.watch(resource, selection, options)

    def logs(
        self, pod: str, namespace: str, options: LogOptions = DEFAULT_LOG
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """See `Client.logs`."""
        return self._client.logs(pod, namespace, options)

    @asynccontextmanager
    async def _writing(self, resource: Resource, key: ObjectKey) -> AsyncIterator[str]:
        """Surrounds a request about one object, whose uid as the cache shows it before is what this yields."""
        known_uid = "" if self._writes is None else self._writes.known_uid(resource, key)
        try:
            async with self._fenced():
                yield known_uid
        except NotFoundError as error:
            # Without the name it is a resource or subresource that is not served.
            if self._writes is not None and error.name == key.name:
                self._writes.deleted(resource, key, known_uid, None)
            raise

    def _fenced(self) -> AbstractAsyncContextManager[None]:
        return nullcontext() if self._fence is None else self._fence.writing()
