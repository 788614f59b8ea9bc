"""The HTTP side of the stand-in: discovery, lists, watches, and the endpoints that steer it.

Why not the fake of `trainer_kube_testing`: that one behaves like an API server and encodes what it stores; this one
must never be what a client waits for, so it only joins bytes that were encoded beforehand. It compresses nothing, knows
no namespaces, selectors or writes, and sends no bookmarks except the one that ends a streamed list.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass

from aiohttp import web
from aiohttp.typedefs import Handler

from benchmarks.server.collection import INITIAL_EVENTS_END, KINDS, Collection
from benchmarks.server.control import Disturbance, Emission, Reset
from benchmarks.server.discovery import ANSWERS
from trainer.kube import Object

EVENTS_PER_WRITE = 32

EXPIRED = (
    b'{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
    b'"message":"too old resource version","reason":"Expired","code":410}}\n'
)


@dataclass(eq=False, slots=True)
class _OpenWatch:
    request: web.Request
    collection: Collection
    shall_end: bool = False


class Server:
    """Serves one collection at a time; `reset` replaces it."""

    def __init__(self) -> None:
        self._collection = Collection(KINDS[0], 0, 0)
        self._settings = Reset(KINDS[0].plural, 0)
        self._watches: list[_OpenWatch] = []
        """Those that have sent their initial events."""

    def app(self) -> web.Application:
        """The routes."""
        app = web.Application()
        app.add_routes([web.get(path, _fixed(answer)) for path, answer in ANSWERS.items()])
        app.add_routes([web.get(f"/api/v1/{kind.plural}", self._get) for kind in KINDS])
        app.router.add_post("/benchmark/reset", self._reset)
        app.router.add_post("/benchmark/emit", self._emit)
        app.router.add_post("/benchmark/disturb", self._disturb)
        app.router.add_get("/benchmark/watched", self._wait_for_watch)
        return app

    async def _get(self, request: web.Request) -> web.StreamResponse:
        if not request.path.endswith(f"/{self._collection.kind.plural}"):
            return _status(404, "NotFound", "the server does not serve this resource in the present trial")
        if request.query.get("watch") in {"true", "1", "True"}:
            return await self._watch(request)
        return self._list(request)

    def _list(self, request: web.Request) -> web.Response:
        collection, query = self._collection, request.query
        limit = int(query.get("limit") or 0)
        if self._settings.ignores_limit_at_zero and query.get("resourceVersion") == "0":
            limit = 0
        first = int(query.get("continue") or 0)
        rest = first + limit if limit and first + limit < collection.visible else 0
        body = b'{"kind":"%bList","apiVersion":"v1","metadata":{"resourceVersion":"%d"%b},"items":[%b]}\n' % (
            collection.kind.name.encode(),
            collection.version,
            b',"continue":"%d"' % rest if rest else b"",
            collection.items(first, limit),
        )
        return web.Response(body=body, content_type="application/json")

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        streams_list = request.query.get("sendInitialEvents") == "true"
        if streams_list and not self._settings.streams_lists:
            return _status(422, "Invalid", "sendInitialEvents is forbidden for watch unless WatchList is enabled")
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        collection, start = self._collection, request.query.get("resourceVersion") or "0"
        version = collection.version if streams_list or start == "0" else int(start)
        if collection.is_compacted(version):
            await response.write(EXPIRED)
            return response
        if streams_list or start == "0":
            await _write_all(response, collection.initial_events())
        if streams_list:
            await response.write(collection.bookmark(INITIAL_EVENTS_END))
        watch = _OpenWatch(request, collection)
        self._watches.append(watch)
        collection.wake()
        try:
            await self._follow(watch, response, version)
        finally:
            self._watches.remove(watch)
        return response

    async def _follow(self, watch: _OpenWatch, response: web.StreamResponse, version: int) -> None:
        while self._is_open(watch):
            events = watch.collection.since(version, EVENTS_PER_WRITE)
            version += len(events)
            if events:
                await response.write(b"".join(events))
            else:
                await watch.collection.wait_for_change()

    def _is_open(self, watch: _OpenWatch) -> bool:
        return not watch.shall_end and watch.collection is self._collection

    async def _reset(self, request: web.Request) -> web.Response:
        reset = Reset(**await request.json())
        [kind] = [kind for kind in KINDS if kind.plural == reset.resource]
        old = self._collection
        self._collection = Collection(kind, reset.objects, reset.objects if reset.visible is None else reset.visible)
        self._settings = reset
        old.wake()
        return web.json_response({})

    async def _emit(self, request: web.Request) -> web.Response:
        emission, collection = Emission(**await request.json()), self._collection
        started, version = time.monotonic(), collection.version
        for number in range(emission.events):
            if emission.per_second:
                await asyncio.sleep(max(started + number / emission.per_second - time.monotonic(), 0))
            elif number % EVENTS_PER_WRITE == 0:
                await asyncio.sleep(0)
            version = collection.add() if emission.adds else collection.update(number)
        return web.json_response({"version": version})

    async def _disturb(self, request: web.Request) -> web.Response:
        disturbance, collection = Disturbance(**await request.json()), self._collection
        moment = time.monotonic()
        for watch in self._watches:
            watch.shall_end = True
            transport = watch.request.transport
            if not disturbance.is_orderly and transport is not None:
                transport.abort()
        version = collection.update(collection.visible - 1)
        if disturbance.compacts:
            collection.compact()
        collection.wake()
        return web.json_response({"version": version, "moment": moment})

    async def _wait_for_watch(self, _: web.Request) -> web.Response:
        while not any(map(self._is_open, self._watches)):
            await self._collection.wait_for_change()
        return web.json_response({})


async def _write_all(response: web.StreamResponse, events: Iterable[bytes]) -> None:
    batch: list[bytes] = []
    for event in events:
        batch.append(event)
        if len(batch) == EVENTS_PER_WRITE:
            await response.write(b"".join(batch))
            batch.clear()
    if batch:
        await response.write(b"".join(batch))


def _status(code: int, reason: str, message: str) -> web.Response:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}
    return web.json_response(status | {"reason": reason, "message": message, "code": code}, status=code)


def _fixed(answer: Object) -> Handler:
    async def handle(_: web.Request) -> web.Response:
        return web.json_response(answer)

    return handle
