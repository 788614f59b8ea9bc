"""WatchHandler: stores the events of one watch."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec
from structlog.typing import FilteringBoundLogger

from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.client import INITIAL_EVENTS_END, EventType, RawJson, WatchEvent
from trainer.kube.errors import TransportError
from trainer.kube.metrics.caches import CacheMetrics
from trainer.kube.objects import ObjectKey


class _BookmarkMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Bookmark(msgspec.Struct):
    metadata: _BookmarkMeta


_bookmark = msgspec.json.Decoder(_Bookmark)


class UnmarkedInitialEventsError(TransportError):
    """The server takes no notice of `sendInitialEvents`: one that does sends no bookmark before their end."""


class Sink(Protocol):
    """The receiver of a reflector's complete lists and single changes, in the order of the server."""

    async def replace(self, objects: list[CachedObject], resource_version: str) -> None:
        """These are all objects that exist at this version; whatever else was known is gone."""

    async def unserved(self) -> None:
        """The API server does not serve the kind, which is optional: there is nothing of it."""

    def put(self, obj: CachedObject) -> None:
        """The object was created or changed."""

    def remove(self, obj: CachedObject) -> None:
        """The object is gone; this is its last state."""

    def caught_up(self, resource_version: str) -> None:
        """Everything up to this version was delivered."""


class WatchHandler:
    """Hands the events of one watch to the sink and remembers how far it came.

    Args:
        sink: gets the changes.
        convert: makes of JSON what the sink keeps; raises ValueError for what is no such object.
        replaced: gets the objects of the initial events when all have come.
        logger: names the resource.
        metrics: counts events.
        version: where the watch starts.
        initial: {} when the watch begins with initial events, which are in no order; default: it does not.
        keeps: the filter of the objects of the initial events; default: all are kept.
    """

    def __init__(
        self,
        sink: Sink,
        convert: Callable[[RawJson], CachedObject],
        *,
        replaced: Callable[[list[CachedObject], str], Awaitable[None]],
        logger: FilteringBoundLogger,
        metrics: CacheMetrics,
        version: str = "",
        initial: dict[ObjectKey, CachedObject] | None = None,
        keeps: Callable[[CachedObject], bool] | None = None,
    ) -> None:
        self._sink = sink
        self._convert = convert
        self._replaced = replaced
        self._log = logger
        self._metrics = metrics
        self._initial = initial
        self._keeps = keeps
        self.expects_initial_events = initial is not None
        """Whether the watch was to begin with initial events."""
        self.resource_version = version
        """The watch can go on from here; "" until the initial events have ended."""
        self.events = 0
        self.heard_at = 0.0
        """When the watch was opened or last sent something, by the clock's monotonic time."""

    async def accept(self, event: WatchEvent) -> None:
        """Deal with the next event; one that makes no sense is logged and skipped.

        Raises:
            UnmarkedInitialEventsError: initial events were expected, and their end will never be marked.
        """
        self.events += 1
        self._metrics.events.inc()
        if event.type is EventType.BOOKMARK:
            await self._bookmark(event.raw)
            return
        try:
            obj = self._convert(event.raw)
        except ValueError as error:
            self._log.warning("skipped watch event", type=event.type, reason=str(error))
            return
        if not obj.resource_version:
            self._log.warning("skipped watch event without resource version", type=event.type, key=str(obj.key))
            return
        if self._initial is not None:
            if event.type is EventType.DELETED:
                self._initial.pop(obj.key, None)
            elif obj.key in self._initial or self._keeps is None or self._keeps(obj):
                self._initial[obj.key] = obj
            return
        if event.type is EventType.DELETED:
            self._sink.remove(obj)
        else:
            self._sink.put(obj)
        self.resource_version = obj.resource_version

    async def _bookmark(self, raw: RawJson) -> None:
        try:
            metadata = _bookmark.decode(raw).metadata
        except msgspec.DecodeError as error:
            self._log.warning("skipped bookmark", reason=str(error))
            return
        version = metadata.resource_version
        if not version:
            self._log.warning("skipped bookmark without resource version")
            return
        if self._initial is not None:
            if (metadata.annotations or {}).get(INITIAL_EVENTS_END) != "true":
                raise UnmarkedInitialEventsError("a bookmark came before the end of the initial events was marked")
            objects, self._initial = list(self._initial.values()), None
            await self._replaced(objects, version)
        self.resource_version = version
        self._sink.caught_up(version)
