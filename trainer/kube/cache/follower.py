"""Follower: what becomes of the events of one watch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from trainer.kube.client import INITIAL_EVENTS_END, EventType
from trainer.kube.objects import annotations_of, resource_version_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from structlog.typing import FilteringBoundLogger

    from trainer.kube.cache.cached_object import CachedObject
    from trainer.kube.client import RawJson, WatchEvent
    from trainer.kube.metrics.caches import CacheMetrics
    from trainer.kube.objects import ObjectKey


class Sink(Protocol):
    """What a reflector tells: complete lists and single changes, in the order of the server."""

    async def replace(self, objects: list[CachedObject], resource_version: str) -> None:
        """These are all objects that exist at this version; whatever else was known is gone."""

    def put(self, obj: CachedObject) -> None:
        """The object was created or changed."""

    def remove(self, obj: CachedObject) -> None:
        """The object is gone; this is its last state."""

    def caught_up(self, resource_version: str) -> None:
        """Everything up to this version has been told."""


class Follower:
    """Hands the events of one watch to the sink and remembers how far it came.

    Args:
        sink: is told of changes.
        convert: makes of JSON what the sink keeps; raises ValueError for what is no such object.
        replaced: is told the objects of the initial events when all have come.
        logger: names the resource.
        metrics: counts events; default: nothing does.
        version: where the watch starts.
        initial: {} when the watch begins with initial events, which are in no order; default: it does not.
    """

    def __init__(
        self,
        sink: Sink,
        convert: Callable[[RawJson], CachedObject],
        *,
        replaced: Callable[[list[CachedObject], str], Awaitable[None]],
        logger: FilteringBoundLogger,
        metrics: CacheMetrics | None = None,
        version: str = "",
        initial: dict[ObjectKey, CachedObject] | None = None,
    ) -> None:
        self._sink = sink
        self._convert = convert
        self._replaced = replaced
        self._log = logger
        self._metrics = metrics
        self._initial = initial
        self.expects_initial_events = initial is not None
        """Whether the watch was to begin with initial events."""
        self.resource_version = version
        """The watch can go on from here; "" until the initial events have ended."""
        self.events = 0
        self.heard_at = 0.0
        """When the watch was opened or last sent something, by the clock's monotonic time."""

    async def accept(self, event: WatchEvent) -> None:
        """Deal with the next event; one that makes no sense is logged and skipped."""
        self.events += 1
        if self._metrics is not None:
            self._metrics.events.inc()
        if event.type is EventType.BOOKMARK:
            await self._bookmark(event)
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
            else:
                self._initial[obj.key] = obj
            return
        if event.type is EventType.DELETED:
            self._sink.remove(obj)
        else:
            self._sink.put(obj)
        self.resource_version = obj.resource_version

    async def _bookmark(self, event: WatchEvent) -> None:
        bookmark = event.object
        version = resource_version_of(bookmark)
        if not version:
            self._log.warning("skipped bookmark without resource version")
            return
        if self._initial is not None:
            if annotations_of(bookmark).get(INITIAL_EVENTS_END) != "true":
                return
            objects, self._initial = list(self._initial.values()), None
            await self._replaced(objects, version)
        self.resource_version = version
        self._sink.caught_up(version)
