"""Watch requests: the changes of a collection as they happen, from a chosen moment on.

A watcher has no buffer of its own. It is a cursor in the history of the storage; one that falls behind the end of the
history gets 410 in the stream and lists again. Only published changes are sent. A watch of custom resources
ends, as in the real server, when their definition is changed or deleted.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Callable, Iterator

import anyio.lowlevel

from trainer.kube.client import EventType
from trainer.kube.errors import ApiError
from trainer.kube.objects import Object
from trainer_devcluster.apiserver.backend import Backend
from trainer_devcluster.apiserver.definitions.field_selectors import Selectors
from trainer_devcluster.apiserver.definitions.resource_definition import as_requested
from trainer_devcluster.apiserver.definitions.routing import Target
from trainer_devcluster.apiserver.reads.reading import reach_revision, selected_in
from trainer_devcluster.apiserver.storage.storage import Change, Partition, Subscription
from trainer_devcluster.apiserver.wire.params import ListParameters
from trainer_kube_testing.api_semantics import statuses
from trainer_kube_testing.api_semantics.paging import CompactedError
from trainer_kube_testing.api_semantics.watch_events import bookmark, event_of

BOOKMARK_INTERVAL = 60.0
BOOKMARK_BEFORE_END = 2.0
"""Seconds before the end of a watch at which it sends its last bookmark."""
DEFAULT_TIMEOUT = 1800.0
"""Seconds that a watch without timeoutSeconds lasts at least; at most twice that, so that not all end together."""
SLICE_CHANGES = 100
"""How many changes a watch looks at at once."""
ERROR = "ERROR"


class ServedWatch:
    """One watch; iterate over `events` after `start` has succeeded, with `keep_time` running beside."""

    def __init__(self, backend: Backend, target: Target, parameters: ListParameters) -> None:
        """Parse the selectors.

        Raises:
            ApiError: 400, a selector is malformed.
        """
        self._backend = backend
        self._partition = Partition.of(target.definition.resource)
        self._definition = target.definition
        self._resource = target.definition.resource
        self._parameters = parameters
        selectors = Selectors(target.definition, parameters.label_selector, parameters.field_selector)
        self._select: Callable[[Object], bool] = selected_in(target, selectors)
        self._cursor = 0
        self._news = Subscription()
        self._end = 0.0
        self._bookmark_due = False

    async def start(self) -> None:
        """Wait until the storage has reached the first resource version; from then on the time runs.

        Raises:
            ApiError: 504, it does not.
        """
        await reach_revision(self._backend, self._parameters.resource_version or 0)
        timeout = self._parameters.timeout_seconds or DEFAULT_TIMEOUT * random.uniform(1, 2)  # noqa: S311
        self._end = self._backend.clock.monotonic() + timeout

    async def keep_time(self) -> None:
        """Let the watch send its bookmarks and end in time; one timer for all of it costs events nothing."""
        clock = self._backend.clock
        for due in self._bookmark_times(clock.monotonic()):
            await clock.sleep(due - clock.monotonic())
            self._bookmark_due = True
            self._news.wake()
        await clock.sleep(self._end - clock.monotonic())
        self._news.wake()

    async def events(self) -> AsyncGenerator[list[tuple[str, Object]], None]:
        """Event types and objects, in batches; ends at the timeout or after an ERROR."""
        clock, storage = self._backend.clock, self._backend.storage
        with storage.subscribed(self._partition, self._news):
            try:
                initial = self._initial_events()
                await storage.published()
                yield self._in_version(initial)
                while clock.monotonic() < self._end:
                    is_served = self._is_served
                    if not is_served:
                        # What happened before the end is sent before it.
                        await storage.published()
                    changes = storage.changes_since(self._partition, self._cursor, SLICE_CHANGES)
                    more = len(changes) == SLICE_CHANGES
                    self._cursor = changes[-1].revision if more else max(self._cursor, storage.published_revision)
                    batch = self._in_version([event for change in changes if (event := self._event(change))])
                    if self._bookmark_due and not more:
                        self._bookmark_due = False
                        batch.append(self._bookmark())
                    if batch:
                        yield batch
                    if more:
                        await anyio.lowlevel.checkpoint()
                    elif not is_served:
                        return
                    else:
                        await self._news.wait()
            except CompactedError as error:
                yield [(ERROR, statuses.expired(str(error)).status)]
            except ApiError as error:
                yield [(ERROR, error.status)]

    @property
    def _is_served(self) -> bool:
        resource = self._resource
        found = self._backend.registry.find(resource.group, resource.version, resource.plural)
        return found is self._definition

    def _in_version(self, events: list[tuple[str, Object]]) -> list[tuple[str, Object]]:
        if self._definition.versions is None:
            return events
        return [
            (kind, obj if kind == EventType.BOOKMARK else as_requested(self._definition, obj)) for kind, obj in events
        ]

    def _initial_events(self) -> list[tuple[str, Object]]:
        parameters, storage = self._parameters, self._backend.storage
        initial = parameters.send_initial_events
        from_now_on = not parameters.resource_version and initial is None
        if not (initial or from_now_on):
            self._cursor = parameters.resource_version or storage.revision
            return []
        self._cursor = storage.revision
        batch: list[tuple[str, Object]] = [
            (EventType.ADDED, obj) for obj in storage.snapshot(self._partition) if self._select(obj)
        ]
        if initial:
            batch.append(self._bookmark(ends_initial_events=True))
        return batch

    def _bookmark_times(self, now: float) -> Iterator[float]:
        """When bookmarks are due; the one before the end is left out of watches that are shorter than its lead."""
        last = self._end - BOOKMARK_BEFORE_END
        if self._parameters.allow_bookmarks and now < last:
            while (now := now + BOOKMARK_INTERVAL) < last:
                yield now
            yield last

    def _bookmark(self, *, ends_initial_events: bool = False) -> tuple[str, Object]:
        return EventType.BOOKMARK, bookmark(self._resource, self._cursor, ends_initial_events=ends_initial_events)

    def _event(self, change: Change) -> tuple[str, Object] | None:
        is_deletion = change.type is EventType.DELETED
        return event_of(change.previous, change.object, self._select, is_deletion=is_deletion)
