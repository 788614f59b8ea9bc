"""Watch requests: the changes of a collection as they happen, from a chosen moment on.

A watcher has no buffer of its own. It is a cursor in the history of the storage; one that falls behind the end of the
history is told so (410 in the stream) and lists again.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from trainer.devcluster.apiserver import status
from trainer.devcluster.apiserver.fields import Selectors
from trainer.devcluster.apiserver.reading import reach_revision, selected_in
from trainer.devcluster.apiserver.storage import CompactedError, Partition
from trainer.kube.client import EventType
from trainer.kube.clock import move_on_after
from trainer.kube.objects import resource_version_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator

    from trainer.devcluster.apiserver.backend import Backend
    from trainer.devcluster.apiserver.params import ListParameters
    from trainer.devcluster.apiserver.routing import Target
    from trainer.devcluster.apiserver.storage import Change
    from trainer.kube.objects import Object

BOOKMARK_INTERVAL = 60.0
BOOKMARK_BEFORE_END = 2.0
"""Seconds before the end of a watch at which it sends its last bookmark."""
DEFAULT_TIMEOUT = 1800.0
"""Seconds that a watch without timeoutSeconds lasts at least; at most twice that, so that not all end together."""
INITIAL_EVENTS_END = "k8s.io/initial-events-end"
ERROR = "ERROR"


class Watch:
    """One watch; iterate over `events` after `start` has succeeded."""

    def __init__(self, backend: Backend, target: Target, parameters: ListParameters) -> None:
        """Parse the selectors.

        Raises:
            StatusError: 400, a selector is malformed.
        """
        self._backend = backend
        self._partition = Partition.of(target.definition.resource)
        self._resource = target.definition.resource
        self._parameters = parameters
        selectors = Selectors(target.definition, parameters.label_selector, parameters.field_selector)
        self._select: Callable[[Object], bool] = selected_in(target, selectors)
        self._cursor = 0

    async def start(self) -> None:
        """Wait until the storage has reached the first resource version.

        Raises:
            StatusError: 504, it does not.
        """
        await reach_revision(self._backend, self._parameters.resource_version or 0)

    async def events(self) -> AsyncGenerator[list[tuple[str, Object]], None]:
        """Event types and objects, in batches; ends at the timeout or after an ERROR."""
        clock, storage = self._backend.clock, self._backend.storage
        timeout = self._parameters.timeout_seconds or DEFAULT_TIMEOUT * random.uniform(1, 2)  # noqa: S311
        end = clock.monotonic() + timeout
        yield self._initial_events()
        bookmarks = self._bookmark_times(clock.monotonic(), end)
        next_bookmark = next(bookmarks)
        while (now := clock.monotonic()) < end:
            changed = storage.changed(self._partition)
            try:
                changes = storage.changes_since(self._partition, self._cursor)
            except CompactedError as error:
                yield [(ERROR, status.expired(str(error)).to_status())]
                return
            self._cursor = storage.revision
            batch = [event for change in changes if (event := self._event(change))]
            if now >= next_bookmark:
                next_bookmark = next(bookmarks)
                batch.append(self._bookmark())
            if batch:
                yield batch
            async with move_on_after(clock, min(end, next_bookmark) - clock.monotonic()):
                await changed.wait()

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
            batch.append(self._bookmark({INITIAL_EVENTS_END: "true"}))
        return batch

    def _bookmark_times(self, now: float, end: float) -> Iterator[float]:
        """When bookmarks are due; the one before the end is left out of watches that are shorter than its lead."""
        last = end - BOOKMARK_BEFORE_END
        if self._parameters.allow_bookmarks and now < last:
            while (now := now + BOOKMARK_INTERVAL) < last:
                yield now
            yield last
        while True:
            yield end + BOOKMARK_INTERVAL

    def _bookmark(self, annotations: dict[str, str] | None = None) -> tuple[str, Object]:
        metadata: Object = {"resourceVersion": str(self._cursor)}
        if annotations:
            metadata["annotations"] = annotations
        resource = self._resource
        return EventType.BOOKMARK, {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}

    def _event(self, change: Change) -> tuple[str, Object] | None:
        """The change as this watcher sees it: what leaves the selection is deleted, what enters it is added."""
        before = change.previous is not None and self._select(change.previous)
        if change.type is EventType.DELETED:
            return (EventType.DELETED, change.object) if before else None
        after = self._select(change.object)
        if after:
            return (EventType.MODIFIED if before else EventType.ADDED), change.object
        if before and change.previous is not None:
            version = resource_version_of(change.object)
            metadata = {**change.previous["metadata"], "resourceVersion": version}
            return EventType.DELETED, {**change.previous, "metadata": metadata}
        return None
