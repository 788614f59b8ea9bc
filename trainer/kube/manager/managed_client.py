"""The client that a manager gives to its controllers: writes only while it may, and its cache shows what it wrote.

An answer is about the object that the request met. Another may have taken its name by the time at which the answer is
read, so a deletion is shown under the uid that was known when the request was sent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

from trainer.kube.cache.cache import Cache
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
from trainer.kube.election.leader_election import LeaderElector
from trainer.kube.errors import NotFoundError
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.resource import Resource
from trainer.kube.selection import EVERYTHING, Selection


class ManagedClient(Client):
    """A `Client` whose writes an elector lets pass, and a cache shows; reads go straight to the server.

    Deletions of collections are not shown, since the server does not say what they delete.

    Args:
        client: sends the requests.
        cache: shows at once what the server has answered to a write, or that it does not find what is to be changed.
        elector: raises `LeadershipLostError` for a write while another process may be writing. Default: there is none.
    """

    def __init__(self, client: Client, cache: Cache, elector: LeaderElector | None = None) -> None:
        self._client = client
        self._cache = cache
        self._elector = elector

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
        if request.verb is Verb.DELETE:
            self._cache.deleted(resource, key, request.options.uid or known_uid, answer)
        elif answer is not None:
            self._cache.wrote(resource, answer)
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
        known_uid = self._cache.known_uid(resource, key)
        try:
            async with self._fenced():
                yield known_uid
        except NotFoundError as error:
            # Without the name it is a resource or subresource that is not served.
            if error.name == key.name:
                self._cache.deleted(resource, key, known_uid, None)
            raise

    def _fenced(self) -> AbstractAsyncContextManager[None]:
        return nullcontext() if self._elector is None else self._elector.writing()
