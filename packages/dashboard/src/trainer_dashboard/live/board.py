"""Boards: a row for each object of a kind, kept by an informer, and pushed to every page that shows their list."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol

import anyio
import msgspec
from aiohttp import web

from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.cache.change_handler import ChangeHandler
from trainer.kube.cache.informer import Informer
from trainer.kube.clock import Clock, move_on_after
from trainer.kube.objects import Object, ObjectKey, labels_of
from trainer.view.row import TrainJobRow
from trainer_dashboard.access.parties import Stream
from trainer_dashboard.access.viewer import ListableNamespaces, Viewer
from trainer_dashboard.live.event_stream import Changes, EventStream, event_stream
from trainer_dashboard.live.rows import row_of
from trainer_dashboard.live.trends import Trends

PAUSE = 0.25
"""Seconds between two events of a stream: what changes meanwhile is sent at once."""
RENEWAL = 60.0
"""Seconds between two questions of an open list which objects its viewer may see."""

_FIRST = 60
"""Rows that a list gets at once, more than a screen shows; all others follow."""
_LABELS = 16
"""Most labels of a TrainJob that a list can be grouped by."""
_SYNC = 5.0
"""Seconds after which an answer is given of what is known of a cluster that does not answer."""


class Rows(Protocol):
    """Makes the rows of a kind, which have `created`."""

    def of(self, obj: CachedObject) -> Object:
        """That of an object."""

    def forget(self, key: ObjectKey) -> None:
        """An object is gone."""


class JobRows:
    """The rows of TrainJobs, with the trend of a metric and with labels."""

    def __init__(self) -> None:
        self._trends = Trends()

    def of(self, obj: CachedObject) -> Object:
        """See `Rows`."""
        job = obj.decode()
        row = TrainJobRow.of(job)
        return row_of(row) | {"metric": self._trends.add(obj.key, row), "labels": _labels(job)}

    def forget(self, key: ObjectKey) -> None:
        """See `Rows`."""
        self._trends.forget(key)


class _Row(NamedTuple):
    """A row as pages get it."""

    encoded: msgspec.Raw
    created: str


class _Page:
    """What one open list shows and has not been sent yet: keys of objects, however slow its reader is."""

    def __init__(self) -> None:
        self.changes = Changes()
        self.pending: set[ObjectKey] = set()
        self.shown: set[ObjectKey] = set()


class Board:
    """Rows by key, encoded once for all pages."""

    def __init__(self, informer: Informer, rows: Rows, clock: Clock) -> None:
        self._informer = informer
        self._made_by = rows
        self._clock = clock
        self._rows: dict[ObjectKey, _Row] = {}
        self._pages: set[_Page] = set()
        informer.add_handler(ChangeHandler(self._put, self._drop))

    async def stream(self, request: web.BaseRequest, viewer: Viewer, slot: Stream) -> web.StreamResponse:
        """Push the list: `rows` with `all` of them, then those that have `changed` or are `gone`.

        Of many the newest are sent first, with how many `more` follow at once.

        They are those of the namespaces where the viewer may list the kind; they come and go with these rights.
        Beside them goes `problem`, with the text of what keeps the watch from going on, empty when it is over.
        """
        async with event_stream(request, self._clock, viewer, slot, self._informer) as stream:
            await self._informer.wait_for_sync()
            listable = ListableNamespaces(viewer, self._informer.resource)
            await listable.renew(self._namespaces())
            with self._page() as page:
                page.shown = {key for key in self._rows if listable.has(key.namespace)}
                newest = sorted(page.shown, key=lambda key: self._rows[key].created, reverse=True)
                first, rest = newest[:_FIRST], newest[_FIRST:]
                await stream.send("rows", {"all": self._encoded(first), "more": len(rest)})
                if rest:
                    await stream.send("rows", {"changed": self._encoded(rest), "gone": []})
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._renew, stream, page, listable)
                    tasks.start_soon(self._send_changes, stream, page, listable)
        return stream.response

    async def namespaces(self, viewer: Viewer) -> list[str]:
        """Those with objects that a viewer may list, in order.

        Raises:
            KubeError: the API server does not say.
        """
        async with move_on_after(self._clock, _SYNC):
            await self._informer.wait_for_sync()
        listable, present = ListableNamespaces(viewer, self._informer.resource), self._namespaces()
        await listable.renew(present)
        return sorted(filter(listable.has, present))

    async def _send_changes(self, stream: EventStream, page: _Page, listable: ListableNamespaces) -> None:
        while True:
            await page.changes.wait()
            keys, page.pending = page.pending, set()
            await listable.ask(key.namespace for key in keys)
            changed = {key for key in keys if key in self._rows and listable.has(key.namespace)}
            gone = (keys - changed) & page.shown
            if changed or gone:
                page.shown |= changed
                page.shown -= gone
                await stream.send("rows", {"changed": self._encoded(changed), "gone": list(gone)})
                await self._clock.sleep(PAUSE)

    async def _renew(self, stream: EventStream, page: _Page, listable: ListableNamespaces) -> None:
        while True:
            await self._clock.sleep(RENEWAL)
            changed = await listable.renew(self._namespaces())
            # A namespace that came meanwhile was not asked about: what is shown of it goes, and is asked about anew.
            if lost := {key for key in page.shown if not listable.has(key.namespace)}:
                page.shown -= lost
                await stream.send("rows", {"changed": [], "gone": list(lost)})
            page.pending.update(lost, (key for key in self._rows if key.namespace in changed))
            page.changes.notify()

    def _encoded(self, keys: Iterable[ObjectKey]) -> list[msgspec.Raw]:
        return [self._rows[key].encoded for key in keys if key in self._rows]

    def _namespaces(self) -> set[str]:
        return {key.namespace for key in self._rows}

    def _put(self, obj: CachedObject) -> None:
        content = self._made_by.of(obj)
        made = _Row(msgspec.Raw(msgspec.json.encode(content)), content["created"] or "")
        if self._rows.get(obj.key) != made:
            self._rows[obj.key] = made
            self._announce(obj.key)

    def _drop(self, obj: CachedObject) -> None:
        self._rows.pop(obj.key, None)
        self._made_by.forget(obj.key)
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


def _labels(job: Object) -> dict[str, str]:
    return dict(sorted(labels_of(job).items())[:_LABELS])
