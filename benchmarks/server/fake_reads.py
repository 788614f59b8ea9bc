"""Lists and watches of a FakeClient's objects over HTTP, for benchmarks that play their own API server."""

from __future__ import annotations

from contextlib import suppress

import msgspec
from aiohttp import web

from trainer.kube.client import ListOptions, WatchOptions
from trainer.kube.resource import Resource
from trainer.kube.selection import Selection
from trainer_kube_testing import FakeClient


def json_response(body: object, status: int = 200) -> web.Response:
    """An answer in JSON."""
    return web.Response(body=msgspec.json.encode(body), content_type="application/json", status=status)


async def serve_read(
    objects: FakeClient, resource: Resource, request: web.Request, namespace: str | None = None
) -> web.StreamResponse:
    """Answer a list or watch of one namespace. Default: of all."""
    query = request.query
    selection = Selection(
        namespace,
        label_selector=query.get("labelSelector", ""),
        field_selector=query.get("fieldSelector", ""),
        metadata_only="PartialObjectMetadata" in request.headers.get("Accept", ""),
    )
    version = query.get("resourceVersion", "")
    if "watch" in query:
        start = WatchOptions(version, send_initial_events="sendInitialEvents" in query)
        return await _serve_watch(objects, resource, request, selection, start)
    options = ListOptions(version, limit=int(query.get("limit", 0)), continue_token=query.get("continue", ""))
    page = await objects.list_page(resource, selection, options)
    metadata = {"resourceVersion": page.resource_version, "continue": page.continue_token}
    items = [msgspec.Raw(raw) for raw in page.raw_items]
    return json_response({"kind": resource.list_kind, "metadata": metadata, "items": items})


async def _serve_watch(
    objects: FakeClient, resource: Resource, request: web.Request, selection: Selection, start: WatchOptions
) -> web.StreamResponse:
    response = web.StreamResponse()
    async with objects.watch(resource, selection, start) as events:
        await response.prepare(request)
        with suppress(ConnectionResetError):  # the manager has ended
            async for event in events:
                await response.write(b'{"type":"%b","object":%b}\n' % (event.type.encode(), bytes(event.raw)))
    return response
