"""Reading a whole collection in pages, as one consistent list."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

import anyio.lowlevel

from trainer.kube.client import Client, ListOptions, ObjectList, RawJson
from trainer.kube.errors import GoneError
from trainer.kube.resource import Resource
from trainer.kube.selection import Selection

PAGE_SIZE = 500
"""Objects per page, as in client-go."""

PAGE_BYTES = 4 << 20
"""Pages of larger objects shrink to about so much, so that none is slow to send, to hold or to decode."""

SLICE = 0.005
"""Seconds of work on many objects after which other tasks get a turn."""

_T = TypeVar("_T")

FilterFactory: TypeAlias = "Callable[[], Callable[[_T], bool]]"
"""Makes the filter for one list; it decides about each object in turn whether it is kept."""


@dataclass(frozen=True, slots=True)
class Collected(Generic[_T]):
    """A whole collection, each object as the caller keeps it."""

    items: list[_T]
    resource_version: str
    pages: int = 1
    """The number of pages."""


async def in_slices(items: Iterable[_T]) -> AsyncIterator[_T]:
    """The items, with a turn for other tasks whenever the work on them has taken `SLICE`."""
    # The processor's time is meant, which no injected clock measures.
    end = time.perf_counter() + SLICE
    for item in items:
        yield item
        if time.perf_counter() > end:
            await anyio.lowlevel.checkpoint()
            end = time.perf_counter() + SLICE


async def collect(
    client: Client,
    resource: Resource,
    selection: Selection,
    convert: Callable[[RawJson], _T],
    *,
    resource_version: str = "",
    always_in_pages: bool = False,
    new_filter: FilterFactory[_T] | None = None,
) -> Collected[_T]:
    """Read all pages; `convert` has dealt with each object before the next page is fetched, which keeps memory low.

    Pages are asked for when the list may be the newest or any; others only with `always_in_pages`.
    Objects that the filter of `new_filter` rejects are dropped at once.
    A continue token that expires on the way (410) leads to one unpaged request, since the rest of the snapshot is gone.

    Raises:
        GoneError: the resource version itself is too old.
    """
    items: list[_T] = []
    keeps = None if new_filter is None else new_filter()
    # The limit would make the server read an exact version, which may be compacted, from its storage (API Concepts).
    limit = PAGE_SIZE if always_in_pages or resource_version in {"", "0"} else 0
    pages = 0
    options = ListOptions(resource_version=resource_version, limit=limit)
    while True:
        try:
            page = await client.list_page(resource, selection, options)
        except GoneError:
            if not options.continue_token:
                raise
            page = await client.list_page(resource, selection, ListOptions(resource_version=resource_version))
            items = []
            keeps = None if new_filter is None else new_filter()
        pages += 1
        async for raw in in_slices(page.raw_items):
            item = convert(raw)
            if keeps is None or keeps(item):
                items.append(item)
        if not page.continue_token:
            return Collected(items, page.resource_version, pages)
        options = ListOptions(limit=_next_limit(page), continue_token=page.continue_token)


async def list_all(client: Client, resource: Resource, selection: Selection) -> ObjectList:
    """Read all pages as one list."""
    collected = await collect(client, resource, selection, lambda raw: raw)
    return ObjectList(collected.items, collected.resource_version, "", resource.api_version, resource.kind)


def _next_limit(page: ObjectList) -> int:
    size = sum(len(memoryview(raw)) for raw in page.raw_items)
    if size == 0:
        return PAGE_SIZE
    return max(1, min(PAGE_SIZE, PAGE_BYTES * len(page.raw_items) // size))
