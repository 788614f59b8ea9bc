"""Reading a whole collection in pages, as one consistent list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from trainer.kube.client import ListOptions, ObjectList, Selection
from trainer.kube.errors import GoneError

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainer.kube.objects import Object
    from trainer.kube.resource import Resource

PAGE_SIZE = 500
"""As client-go: large enough for throughput, small enough that one page does not hold up the event loop for long."""


class PageSource(Protocol):
    """The part of `Client` that paging needs."""

    async def list_page(self, resource: Resource, selection: Selection, options: ListOptions) -> ObjectList:
        """Read one page of objects."""


def _unchanged(obj: Object) -> Object:
    return obj


async def list_all(
    source: PageSource,
    resource: Resource,
    selection: Selection,
    *,
    resource_version: str = "",
    transform: Callable[[Object], Object] = _unchanged,
) -> ObjectList:
    """Read all pages; `transform` sees each object before the next page is fetched, so it can keep memory low.

    A continue token that expires on the way (410) leads to one unpaged request, since the rest of the snapshot is gone.

    Raises:
        GoneError: the resource version itself is too old.
    """
    items: list[Object] = []
    options = ListOptions(resource_version=resource_version, limit=PAGE_SIZE)
    while True:
        try:
            page = await source.list_page(resource, selection, options)
        except GoneError:
            if not options.continue_token:
                raise
            page = await source.list_page(resource, selection, ListOptions(resource_version=resource_version))
            items = []
        items += map(transform, page.items)
        if not page.continue_token:
            return ObjectList(items, page.resource_version)
        options = ListOptions(limit=PAGE_SIZE, continue_token=page.continue_token)
