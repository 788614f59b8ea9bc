"""Sources: where the keys of a controller come from.

The controller runs its sources, waits until each has synced, and then starts its workers. A source that raises stops
the manager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import anyio

from trainer.kube.cache.informer import Informer
from trainer.kube.cache.registration import Registration
from trainer.kube.controller.handlers import Enqueue, EnqueueMapped, MapFunction
from trainer.kube.controller.predicates import Predicate
from trainer.kube.objects import ObjectKey
from trainer.kube.pager import in_slices
from trainer.kube.queue.workqueue import LOW_PRIORITY


class Source(Protocol):
    """Enqueues keys for one controller."""

    async def run(self, enqueue: Enqueue) -> None:
        """Enqueue keys until cancelled, or until there will be no more; called once."""

    async def wait_for_sync(self) -> None:
        """Wait until the keys of all that existed when the source started are enqueued."""

    @property
    def problem(self) -> str:
        """Why `wait_for_sync` does not return yet, with the remedy."""


class Kind:
    """The objects of one informer, through a map function.

    While the API server does not serve the kind, as before its CRD is installed, the informer keeps asking for it. That
    keeps the controller from starting, unless the informer is of an optional kind.
    """

    def __init__(self, informer: Informer, map_function: MapFunction, predicate: Predicate | None = None) -> None:
        self._informer = informer
        self._map = map_function
        self._predicate = predicate
        self._registration: Registration | None = None
        self._started = anyio.Event()

    async def run(self, enqueue: Enqueue) -> None:
        """Enqueue what the informer has and what changes, until cancelled."""
        registration = self._informer.add_handler(EnqueueMapped(enqueue, self._map, self._predicate))
        self._registration = registration
        self._started.set()
        try:
            await anyio.sleep_forever()
        finally:
            self._informer.remove_handler(registration)

    async def wait_for_sync(self) -> None:
        """Wait until all objects that the informer had or has listed first are mapped, not merely cached."""
        await self._started.wait()
        assert self._registration is not None
        await self._registration.wait_for_sync()

    @property
    def problem(self) -> str:
        """Why the informer has not synced."""
        return self._informer.problem or f"the handler of {self._informer.resource.qualified_name} has not caught up"


class Announcer(Protocol):
    """Announces changes of what the API server offers; an informer of an optional kind is one."""

    def add_listener(self, listener: Callable[[], None]) -> None:
        """Call `listener` on the event loop at each change."""

    def remove_listener(self, listener: Callable[[], None]) -> None:
        """Call it no more."""

    async def wait_for_sync(self) -> None:
        """Wait until it is known what the API server offers."""

    @property
    def problem(self) -> str | None:
        """Why that is not known."""


class Availability:
    """Requeues keys when an optional kind begins to be served, or ceases to be, or at changes of a like kind.

    Such as the objects that could not be dealt with without it. They come with `LOW_PRIORITY`.

    Args:
        announcer: the informer of the kind, or whatever else announces changes.
        keys: called at each change, and iterated with turns for other tasks in between.
    """

    def __init__(self, announcer: Announcer, keys: Callable[[], Iterable[ObjectKey]]) -> None:
        self._announcer = announcer
        self._keys = keys
        self._changed = anyio.Event()

    async def run(self, enqueue: Enqueue) -> None:
        """Enqueue the keys at each change, until cancelled."""
        self._announcer.add_listener(self._notify)
        try:
            while True:
                await self._changed.wait()
                self._changed = anyio.Event()
                async for key in in_slices(self._keys()):
                    enqueue(key, priority=LOW_PRIORITY)
        finally:
            self._announcer.remove_listener(self._notify)

    async def wait_for_sync(self) -> None:
        """Wait until it is known what is served."""
        await self._announcer.wait_for_sync()

    @property
    def problem(self) -> str:
        """Why that is not known."""
        return self._announcer.problem or ""

    def _notify(self) -> None:
        self._changed.set()
