"""The board: a row for each TrainJob, kept by an informer, and pushed to every page that shows the list."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from trainer.dashboard.event_stream import Changes, event_stream
from trainer.dashboard.rows import row_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiohttp import web

    from trainer.dashboard.event_stream import EventStream
    from trainer.kube.cache.cached_object import CachedObject
    from trainer.kube.cache.informer import Informer
    from trainer.kube.clock import Clock
    from trainer.kube.objects import ObjectKey

PAUSE = 0.25
"""Seconds between two events of a stream: what changes meanwhile is sent at once."""


class _Page:
    """What one open list has not been sent yet; no more than a key for each TrainJob, however slow its reader is."""

    def __init__(self) -> None:
        self.changes = Changes()
        self.pending: set[ObjectKey] = set()


class Board:
    """Rows by key, encoded once for all pages; a handler of the informer of TrainJobs."""

    def __init__(self, informer: Informer, clock: Clock) -> None:
        self._informer = informer
        self._clock = clock
        self._rows: dict[ObjectKey, msgspec.Raw] = {}
        self._pages: set[_Page] = set()
        informer.add_handler(self)

    def on_add(self, obj: CachedObject, *, initial: bool) -> None:  # noqa: ARG002
        """See `Handler`."""
        self._put(obj)

    def on_update(self, old: CachedObject, new: CachedObject) -> None:  # noqa: ARG002
        """See `Handler`."""
        self._put(new)

    def on_delete(self, obj: CachedObject, *, stale: bool) -> None:  # noqa: ARG002
        """See `Handler`."""
        self._rows.pop(obj.key, None)
        self._announce(obj.key)

    async def stream(self, request: web.BaseRequest) -> web.StreamResponse:
        """Push the list: `rows` with `all` of them first, then those that have `changed` or are `gone`.

        Beside them goes `problem`, with the text of what hinders the watch, empty when it is over.
        """
        async with event_stream(request, self._clock, self._informer) as stream:
            await self._informer.wait_for_sync()
            with self._page() as page:
                await stream.send("rows", {"all": list(self._rows.values())})
                await self._send_changes(stream, page)
        return stream.response

    async def _send_changes(self, stream: EventStream, page: _Page) -> None:
        while True:
            await page.changes.wait()
            keys, page.pending = page.pending, set()
            if keys:
                changed = [self._rows[key] for key in keys if key in self._rows]
                await stream.send("rows", {"changed": changed, "gone": [key for key in keys if key not in self._rows]})
                await self._clock.sleep(PAUSE)

    def _put(self, obj: CachedObject) -> None:
        row = msgspec.json.encode(row_of(obj.decode()))
        if self._rows.get(obj.key) != msgspec.Raw(row):
            self._rows[obj.key] = msgspec.Raw(row)
            self._announce(obj.key)

    def _announce(self, key: ObjectKey) -> None:
        for page in self._pages:
            page.pending.add(key)
            page.changes.notify()

    @contextmanager
    def _page(self) -> Iterator[_Page]:
        page = _Page()
        self._pages.add(page)
        try:
            yield page
        finally:
            self._pages.remove(page)
