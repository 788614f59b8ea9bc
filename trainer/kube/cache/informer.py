"""Informer: a local, indexed copy of one resource that notifies its handlers of changes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import partial

import anyio

from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.cache.failures import explain
from trainer.kube.cache.own_writes import OwnWrites, version_of
from trainer.kube.cache.reflector import IDLE, Reflector
from trainer.kube.cache.registration import Handler, Notification, Registration, added, deleted, updated
from trainer.kube.cache.store import IndexFunction, Lister, Store
from trainer.kube.cache.transform import Transform
from trainer.kube.client import Client, RawJson
from trainer.kube.clock import Clock, SystemClock
from trainer.kube.errors import KubeError
from trainer.kube.logger import get_logger
from trainer.kube.metrics import Metrics
from trainer.kube.metrics.caches import CacheMetrics
from trainer.kube.objects import Object, ObjectKey, is_at_its_end, is_being_deleted, key_of, uid_of
from trainer.kube.pager import in_slices
from trainer.kube.resource import Resource
from trainer.kube.selection import EVERYTHING, Matcher, Selection

log = get_logger(__name__)

RESYNC = 10 * 3600.0
"""Seconds, give or take a tenth, after which handlers get every object again; as in controller-runtime."""

SILENCE = 2 * IDLE
"""Seconds without a word from the server after which a cache counts as out of date."""


class InformerRemovedError(RuntimeError):
    """The informer was removed from its cache before it had synced."""


class Informer:
    """Lists and watches the selected objects of one resource; share one per selection (see `Cache.informer`).

    `metadata.managedFields` is dropped from every object. A further `transform` sees each object before it is stored,
    may drop what nobody reads, and costs decoding and encoding it. It must keep what identifies the object and its
    version. When it raises, a watch event is skipped and a list not stored, with a warning.

    With `namespace_limit` at most so many objects of one namespace are kept: what comes on top is as if it did not
    exist. That is for kinds that nothing depends on, and that the owner of a namespace can make in any number.

    An optional kind is one that the API server may do without, such as one whose CRD others install. While it is not
    served the copy is empty and nothing is wrong: the informer has synced, and asks for the kind each 30 s or so. When
    it comes, handlers get what exists as initial adds, and when it goes, the deletion of all of it.

    Handlers are called as soon as the store has a change, with no queue between, so there are no batches, and none that
    a resync would have to wait for; it reaches every handler.

    Raises:
        ValueError: a selector is malformed.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource,
        selection: Selection = EVERYTHING,
        *,
        clock: Clock | None = None,
        transform: Transform | None = None,
        metrics: Metrics | None = None,
        optional: bool = False,
        namespace_limit: int | None = None,
    ) -> None:
        self.resource = resource
        self.selection = selection
        self.transform = transform
        self._matcher = Matcher(selection)
        self._clock = clock or SystemClock()
        self._namespace_limit = namespace_limit
        self._store = Store()
        self._writes = OwnWrites(self._clock)
        self._lister = Lister(self._store, self._writes)
        self._registrations: list[Registration] = []
        self._listeners: list[Callable[[], None]] = []
        self._late = anyio.Event()
        self._telling = anyio.Lock()
        self._settled = anyio.Event()
        self._is_filled = False
        self._has_synced = False
        self._is_served = True
        self._started = False
        series = CacheMetrics(metrics or Metrics(), resource.qualified_name, str(selection))
        self._reflector = Reflector(
            client,
            resource,
            selection,
            self,
            clock=self._clock,
            convert=self._convert,
            metrics=series,
            optional=optional,
            new_filter=None if namespace_limit is None else self._new_filter,
        )
        series.observe(
            event_age=lambda: self.event_age, objects=lambda: len(self._store), size=lambda: self._store.size
        )

    @property
    def lister(self) -> Lister:
        """Read access to the local copy; empty before the first list."""
        return self._lister

    @property
    def has_synced(self) -> bool:
        """Whether the first list is stored and the handlers that were there have got it.

        Also once an optional kind has been found missing.
        """
        return self._has_synced

    @property
    def is_served(self) -> bool:
        """Whether the API server serves the kind: true except while an optional one has been found missing."""
        return self._is_served

    @property
    def last_error(self) -> KubeError | None:
        """Why the latest list or watch failed; None while all is well."""
        return self._reflector.last_error

    @property
    def event_age(self) -> float:
        """Seconds since the server was last heard of; bookmarks keep it below 90."""
        return self._clock.monotonic() - self._reflector.last_heard

    @property
    def problem(self) -> str | None:
        """Why the copy cannot be relied on, with the remedy where there is one; None while it can."""
        name = self.resource.qualified_name
        if self.has_synced and self.event_age <= SILENCE:
            return None
        if self.last_error is not None:
            return explain(self.resource, self.last_error)
        if self.has_synced:
            return f"{name}: nothing was heard of the API server for {self.event_age:.0f} s"
        return f"{name} was not listed in time"

    def add_index(self, name: str, function: IndexFunction) -> None:
        """Let `Lister.by_index` find objects by the values that `function` returns for them.

        Raises:
            ValueError: the name is taken.
            RuntimeError: the informer runs already.
        """
        if self._started:
            raise RuntimeError(
                f"index {name!r} must be added before the informer of {self.resource.qualified_name} starts"
            )
        self._store.add_index(name, function)

    def add_handler(self, handler: Handler) -> Registration:
        """Notify `handler` of changes from now on, and of the present objects as initial adds.

        Returns:
            Tells when the handler has got all initial objects, and ends it with `remove_handler`.
        """
        registration = Registration(handler, self.resource.qualified_name, is_late=self._is_filled)
        self._registrations.append(registration)
        self._late.set()
        return registration

    def remove_handler(self, registration: Registration) -> None:
        """Notify this handler no more; unknown registrations are ignored."""
        if registration in self._registrations:
            self._registrations.remove(registration)
            registration.end()

    def add_listener(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever `is_served` changes after `has_synced`, as it does for optional kinds.

        It is called on the event loop and must not block. Handlers know of the objects that came or went by then.
        """
        self._listeners.append(listener)

    def remove_listener(self, listener: Callable[[], None]) -> None:
        """Call it no more; unknown listeners are ignored."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    def require(self) -> None:
        """Take the kind for one that must be served from now on."""
        self._reflector.optional = False

    async def wait_for_sync(self) -> None:
        """Wait until `has_synced`.

        Raises:
            InformerRemovedError: it will never be.
        """
        await self._settled.wait()
        if not self._has_synced:
            raise InformerRemovedError(f"the informer of {self.resource.qualified_name} was removed before it synced")

    def removed(self) -> None:
        """Mark it as removed from the cache: it will not run again, and nothing waits for it."""
        self._settled.set()

    async def run(self) -> None:
        """List and watch until cancelled; call it once.

        Raises:
            RuntimeError: it has been called before.
        """
        if self._started:
            raise RuntimeError(f"the informer of {self.resource.qualified_name} has been started before")
        self._started = True
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._serve_late_handlers)
            tasks.start_soon(self._resync)
            await self._reflector.run()

    def wrote(self, obj: Object) -> None:
        """Show the server's answer to a write of this process to readers, until the watch shows it or newer."""
        if is_at_its_end(obj):
            # As when the last finalizer is taken away.
            self.deleted(key_of(obj), uid_of(obj), None)
            return
        try:
            written = self._stored(
                CachedObject.of_answer(
                    obj, self.resource.api_version, self.resource.kind, metadata_only=self.selection.metadata_only
                )
            )
        except ValueError as error:
            log.warning("cannot show own write", resource=self.resource.qualified_name, reason=str(error))
            return
        if self._writes.wrote(written, self._store.get(written.key), selected=self._matcher.matches(obj)):
            self._notify_added_and_deleted(written)

    def deleted(self, key: ObjectKey, uid: str, answer: Object | None) -> None:
        """Show readers what is left of an object that this process has deleted, until the watch shows it or newer."""
        if answer is not None and is_being_deleted(answer):
            self.wrote(answer)
            return
        known = self._lister.peek(key)
        # What has taken the name meanwhile is another object.
        if known is not None and known.uid == uid:
            self._writes.deleted(known)

    async def replace(self, objects: list[CachedObject], resource_version: str) -> None:
        """Make the local copy equal to a complete list (for the reflector)."""
        await self._replace(objects, resource_version, is_served=True)

    async def unserved(self) -> None:
        """Empty the local copy (for the reflector)."""
        self._writes.forget()
        await self._replace([], "", is_served=False)

    async def _replace(self, objects: list[CachedObject], resource_version: str, *, is_served: bool) -> None:
        async with self._telling:
            old = await self._store.replace(objects)
            # Readers see the objects and that the kind is served at the same moment.
            was_served, self._is_served = self._is_served, is_served
            is_first = not (self._has_synced and was_served)
            self._is_filled = True
            ended = self._writes.replaced(resource_version, self._store.get)
            async for key, obj in in_slices(old.items()):
                if self._store.get(key) is None:
                    self._notify(partial(deleted, obj, stale=True))
            for obj in ended:
                known = old.get(obj.key)
                if known is None or known.uid != obj.uid:
                    self._notify_added_and_deleted(obj)
            async for obj in in_slices(objects):
                self._notify_of_change(old.get(obj.key), obj, stale=True, initial=is_first)
            for registration in self._registrations:
                registration.notified_of_initial()
            had_synced, self._has_synced = self._has_synced, True
            self._settled.set()
        if had_synced and was_served != is_served:
            for listener in tuple(self._listeners):
                listener()

    def put(self, obj: CachedObject) -> None:
        """Store a created or changed object (for the reflector)."""
        if _is_older(obj, self._store.get(obj.key)):
            return
        if self._is_full(obj):
            return
        old = self._store.put(obj)
        self._writes.observe(obj, gone=False)
        self._notify_of_change(old, obj, stale=False, initial=not self.has_synced)

    def remove(self, obj: CachedObject) -> None:
        """Forget a deleted object (for the reflector)."""
        if _is_older(obj, self._store.get(obj.key)):
            return
        old = self._store.remove(obj.key)
        self._writes.observe(obj, gone=True)
        if old is not None:
            self._notify(partial(deleted, obj, stale=False))

    def caught_up(self, resource_version: str) -> None:
        """Everything up to this version is in the local copy (for the reflector)."""
        self._writes.caught_up(resource_version)

    def _is_full(self, obj: CachedObject) -> bool:
        """Whether the object is new, and its namespace has as many as are kept."""
        if self._namespace_limit is None or self._store.get(obj.key) is not None:
            return False
        return self._store.count(obj.key.namespace) >= self._namespace_limit

    def _new_filter(self) -> Callable[[CachedObject], bool]:
        """Make the filter of one list, which applies the limit of a namespace before all objects are in memory."""
        counts: Counter[str] = Counter()

        def keeps(obj: CachedObject) -> bool:
            counts[obj.key.namespace] += 1
            return self._namespace_limit is None or counts[obj.key.namespace] <= self._namespace_limit

        return keeps

    def _convert(self, raw: RawJson) -> CachedObject:
        obj = CachedObject.compact(
            raw, self.resource.api_version, self.resource.kind, metadata_only=self.selection.metadata_only
        )
        return self._stored(obj)

    def _stored(self, obj: CachedObject) -> CachedObject:
        """The object as the store keeps it, which may be the one that it has."""
        known = self._store.get(obj.key)
        if known is not None and known.resource_version == obj.resource_version and known.uid == obj.uid:
            # A list after a gap repeats most objects: the second copy of each would be there until the first goes.
            return known
        return obj if self.transform is None else self.transform.of(obj)

    def _notify_of_change(self, old: CachedObject | None, new: CachedObject, *, stale: bool, initial: bool) -> None:
        if old is not None and old.uid != new.uid:
            self._notify(partial(deleted, old, stale=stale))
            old = None
        if old is None:
            self._notify(partial(added, new, initial=initial))
        elif old.resource_version != new.resource_version:
            self._notify(partial(updated, old, new))

    def _notify(self, notification: Notification) -> None:
        for registration in tuple(self._registrations):
            registration.notify(notification)

    def _notify_added_and_deleted(self, obj: CachedObject) -> None:
        """Readers have seen an object that this process has written, and no watch has ever shown it."""
        self._notify(partial(added, obj, initial=False))
        self._notify(partial(deleted, obj, stale=True))

    async def _serve_late_handlers(self) -> None:
        while True:
            await self._late.wait()
            self._late = anyio.Event()
            for registration in tuple(self._registrations):
                if registration.is_late:
                    async with self._telling:
                        await registration.catch_up(tuple(self._store))

    async def _resync(self) -> None:
        while True:
            await self._clock.sleep(RESYNC * random.uniform(0.9, 1.1))  # noqa: S311 - spreads load
            async with self._telling:
                async for obj in in_slices(tuple(self._store)):
                    if self._store.get(obj.key) is obj:
                        self._notify(partial(updated, obj, obj))


def _is_older(obj: CachedObject, stored: CachedObject | None) -> bool:
    """Whether a watch that was opened anew repeats something that a later state has overtaken."""
    if stored is None:
        return False
    version, stored_version = version_of(obj), version_of(stored)
    return version is not None and stored_version is not None and version < stored_version
