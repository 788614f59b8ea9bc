"""Informer: a local, indexed copy of one resource that tells its handlers what changes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

import anyio
import structlog

from trainer.kube.client import EVERYTHING, Selection
from trainer.kube.clock import Clock, SystemClock
from trainer.kube.objects import key_of, resource_version_of, uid_of
from trainer.kube.reflector import Reflector
from trainer.kube.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainer.kube.client import Client
    from trainer.kube.errors import KubeError
    from trainer.kube.objects import Object
    from trainer.kube.resource import Resource
    from trainer.kube.store import IndexFunction, Lister

log = structlog.get_logger(__name__)


class Handler(Protocol):
    """Is told of changes, after the store has them.

    Methods run on the event loop between two watch events: they must not block, and usually add a key to a work queue.
    An exception is logged and does not keep other handlers or later changes from being delivered. States in between may
    be skipped; a name that was deleted and created again while no watch was open shows as a delete and an add.
    """

    def on_add(self, obj: Object, *, initial: bool) -> None:
        """The object is new; `initial` when it existed before the handler could see it."""

    def on_update(self, old: Object, new: Object) -> None:
        """The object has changed."""

    def on_delete(self, obj: Object) -> None:
        """The object is gone; after a gap in the watch this is its last known, not its last state."""


def strip_managed_fields(obj: Object) -> Object:
    """Drop `metadata.managedFields`, half of a typical object and of no use to a controller; changes the object."""
    metadata = obj.get("metadata")
    if metadata:
        metadata.pop("managedFields", None)
    return obj


def _added(obj: Object, handler: Handler, *, initial: bool) -> None:
    handler.on_add(obj, initial=initial)


def _updated(old: Object, new: Object, handler: Handler) -> None:
    handler.on_update(old, new)


def _deleted(obj: Object, handler: Handler) -> None:
    handler.on_delete(obj)


class Informer:
    """Lists and watches the selected objects of one resource; share one per selection (see `Manager.informer`)."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        selection: Selection = EVERYTHING,
        *,
        clock: Clock | None = None,
    ) -> None:
        self.resource = resource
        self.selection = selection
        self._store = Store()
        self._handlers: list[Handler] = []
        self._synced = anyio.Event()
        self._started = False
        self._reflector = Reflector(
            client, resource, selection, self, clock=clock or SystemClock(), transform=strip_managed_fields
        )

    @property
    def lister(self) -> Lister:
        """Read access to the local copy; empty before the first list."""
        return self._store.lister

    @property
    def has_synced(self) -> bool:
        """Whether the first list is stored and delivered to the handlers."""
        return self._synced.is_set()

    @property
    def last_error(self) -> KubeError | None:
        """Why the latest list or watch failed; None while all is well."""
        return self._reflector.last_error

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

    def add_handler(self, handler: Handler) -> None:
        """Tell `handler` of changes from now on, and of the objects known by now as initial adds."""
        self._handlers.append(handler)
        for obj in self.lister.list():
            self._deliver(handler, partial(_added, obj, initial=True))

    async def wait_for_sync(self) -> None:
        """Wait until `has_synced`."""
        await self._synced.wait()

    async def run(self) -> None:
        """List and watch until cancelled; call it once.

        Raises:
            RuntimeError: it has been called before.
        """
        if self._started:
            raise RuntimeError(f"the informer of {self.resource.qualified_name} has been started before")
        self._started = True
        await self._reflector.run()

    def replace(self, objects: list[Object]) -> None:
        """Make the local copy equal to a complete list (for the reflector)."""
        vanished = self._store.keys().difference(map(key_of, objects))
        for key in vanished:
            old = self._store.remove(key)
            assert old is not None
            self._tell(partial(_deleted, old))
        for obj in objects:
            self.put(obj)
        self._synced.set()

    def put(self, obj: Object) -> None:
        """Store a created or changed object (for the reflector)."""
        old = self._store.put(obj)
        if old is not None and uid_of(old) != uid_of(obj):
            self._tell(partial(_deleted, old))
            old = None
        if old is None:
            self._tell(partial(_added, obj, initial=not self.has_synced))
        elif resource_version_of(old) != resource_version_of(obj):
            self._tell(partial(_updated, old, obj))

    def remove(self, obj: Object) -> None:
        """Forget a deleted object (for the reflector)."""
        if self._store.remove(key_of(obj)) is not None:
            self._tell(partial(_deleted, obj))

    def _tell(self, notify: Callable[[Handler], None]) -> None:
        for handler in tuple(self._handlers):
            self._deliver(handler, notify)

    def _deliver(self, handler: Handler, notify: Callable[[Handler], None]) -> None:
        try:
            notify(handler)
        except Exception:
            log.exception("handler failed", resource=self.resource.qualified_name, handler=type(handler).__name__)
