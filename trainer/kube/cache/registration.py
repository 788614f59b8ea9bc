"""A handler of an informer, and whether it has got the initial list."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol, TypeAlias

import anyio

from trainer.kube.barrier import Barrier
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.pager import in_slices


class Handler(Protocol):
    """Is notified of changes, after the store has them.

    Methods run on the event loop between two watch events: they must not block, and usually add a key to a work queue.
    An exception is logged and does not keep other handlers or later changes from being delivered. States in between may
    be skipped; a name that was deleted and created again while no watch was open shows as a delete and an add.
    """

    def on_add(self, obj: CachedObject, *, initial: bool) -> None:
        """The object is new; `initial` when it existed before the handler could see it."""

    def on_update(self, old: CachedObject, new: CachedObject) -> None:
        """The object has changed; both are the same object when the informer goes through all of them again."""

    def on_delete(self, obj: CachedObject, *, stale: bool) -> None:
        """The object is gone; `stale` when the watch missed it, so that this is its last known, not its last state."""


Notification: TypeAlias = "partial[None]"
"""Is called with the handler; its last argument so far is the object."""


def added(obj: CachedObject, handler: Handler, *, initial: bool) -> None:
    """Notification of a new object."""
    handler.on_add(obj, initial=initial)


def updated(old: CachedObject, new: CachedObject, handler: Handler) -> None:
    """Notification of a changed object."""
    handler.on_update(old, new)


def deleted(obj: CachedObject, handler: Handler, *, stale: bool) -> None:
    """Notification of an object that is gone."""
    handler.on_delete(obj, stale=stale)


class Registration:
    """One handler of one informer, which `Informer.add_handler` returns."""

    def __init__(self, handler: Handler, resource: str, *, is_late: bool) -> None:
        self._handler = handler
        self._barrier = Barrier("handler failed", resource=resource, handler=type(handler).__name__)
        self._synced = anyio.Event()
        self._has_ended = False
        # Changes wait here while a late handler gets what exists.
        self._waiting: list[Notification] | None = [] if is_late else None

    @property
    def has_synced(self) -> bool:
        """Whether the handler got all objects that existed when it came, or when the informer started."""
        return self._synced.is_set()

    @property
    def is_late(self) -> bool:
        """Whether it has yet to get what existed when it was added."""
        return self._waiting is not None

    async def wait_for_sync(self) -> None:
        """Wait until `has_synced`."""
        await self._synced.wait()

    def end(self) -> None:
        """Notify the handler no more, not even of the remaining initial objects (for the informer)."""
        self._has_ended = True

    def notify(self, notification: Notification) -> None:
        """Call the handler, now or after the events that come before."""
        if self._waiting is not None:
            self._waiting.append(notification)
        else:
            self._deliver(notification)

    def notified_of_initial(self) -> None:
        """The first list was delivered (for the informer)."""
        if self._waiting is None:
            self._synced.set()

    async def catch_up(self, objects: Sequence[CachedObject]) -> None:
        """Notify the handler of the present objects, then of the changes since (for the informer)."""
        # What is on the list already happened before.
        self._waiting = []
        async for obj in in_slices(objects):
            self._deliver(partial(added, obj, initial=True))
        waiting, self._waiting = self._waiting, None
        for notification in waiting:
            self._deliver(notification)
        self._synced.set()

    def _deliver(self, notification: Notification) -> None:
        if self._has_ended:
            return
        try:
            notification(self._handler)
        except Exception:
            # Entered only now: many handlers take less time than a context manager.
            with self._barrier.around(notification.args[-1].key):
                raise
