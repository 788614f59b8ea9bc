"""A cache that shows at once what this process has written itself.

An informer lags behind the API server. A controller that decides from the bare cache would make a pod twice, or count
it twice, when it looks again before its own write has come back. `OwnWrites` lays the answers of the server over the
cache until the cache has caught up (the same purpose as the expectations of client-go).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.devcluster.controllers.recent_uids import RecentUids
from trainer.kube.clock import Clock, SystemClock, timestamp
from trainer.kube.objects import (
    controller_of,
    is_being_deleted,
    key_of,
    metadata_of,
    resource_version_of,
    uid_of,
)

if TYPE_CHECKING:
    from trainer.kube.informer import Informer
    from trainer.kube.objects import Object, ObjectKey


@dataclass(frozen=True, slots=True)
class _Write:
    obj: Object
    at: float
    deletes: bool = False

    def is_shown_by(self, cached: Object) -> bool:
        if uid_of(cached) != uid_of(self.obj):
            return False
        if self.deletes:
            return is_being_deleted(cached)
        # Resource versions are comparable numbers (Kubernetes 1.35, KEP-5504).
        return int(resource_version_of(cached)) >= int(resource_version_of(self.obj))


class OwnWrites:
    """The objects of one informer, with this process's own writes in front."""

    def __init__(self, informer: Informer, *, clock: Clock | None = None, expiry: float = 300.0) -> None:
        """Follow an informer.

        Args:
            informer: the cache to look through.
            clock: for the expiry.
            expiry: seconds after which a write is forgotten that the cache never shows, because the object was deleted
                in between unseen.
        """
        self._lister = informer.lister
        self._clock = clock or SystemClock()
        self._expiry = expiry
        self._writes: dict[ObjectKey, _Write] = {}
        # For answers that arrive after the watch has shown the end of their object.
        self._deleted = RecentUids()
        informer.add_handler(self)

    def remember(self, obj: Object) -> None:
        """Note the server's answer to a create, update or patch."""
        self._note(_Write(obj, self._clock.monotonic()))

    def remember_deletion(self, obj: Object) -> None:
        """Note that the server has accepted the deletion of the object."""
        known = self.get(key_of(obj))
        newest = known if known is not None and uid_of(known) == uid_of(obj) else obj
        marked = {**newest, "metadata": {**metadata_of(newest), "deletionTimestamp": timestamp(self._clock.now())}}
        self._note(_Write(marked, self._clock.monotonic(), deletes=True))

    def get(self, key: ObjectKey) -> Object | None:
        """The object, at least as new as this process's last write to it."""
        return self._newest(key, self._lister.get(key))

    def owned_by(self, owner_uid: str) -> list[Object]:
        """The objects whose controller is the owner, at least as new as this process's last writes to them."""
        found = {key_of(cached): cached for cached in self._lister.by_index("controller-uid", owner_uid)}
        for key, write in self._writes.items():
            if (controller_of(write.obj) or {}).get("uid") == owner_uid:
                found.setdefault(key, write.obj)
        newest = (self._newest(key, self._lister.get(key)) for key in found)
        return [obj for obj in newest if obj is not None and (controller_of(obj) or {}).get("uid") == owner_uid]

    def on_add(self, obj: Object, *, initial: bool) -> None:  # noqa: ARG002 - the handler's signature
        """Drop a write that the cache shows now."""
        self._drop_shown(obj)

    def on_update(self, old: Object, new: Object) -> None:  # noqa: ARG002
        """Drop a write that the cache shows now."""
        self._drop_shown(new)

    def on_delete(self, obj: Object) -> None:
        """Drop what was written to an object that is gone."""
        write = self._writes.get(key_of(obj))
        if write is not None and uid_of(write.obj) == uid_of(obj):
            del self._writes[key_of(obj)]
        self._deleted.add(uid_of(obj))

    def _note(self, write: _Write) -> None:
        key = key_of(write.obj)
        cached = self._lister.get(key)
        if uid_of(write.obj) in self._deleted or (cached is not None and write.is_shown_by(cached)):
            return
        self._writes[key] = write

    def _newest(self, key: ObjectKey, cached: Object | None) -> Object | None:
        write = self._writes.get(key)
        if write is None:
            return cached
        if self._clock.monotonic() - write.at > self._expiry:
            del self._writes[key]
            return cached
        return write.obj

    def _drop_shown(self, obj: Object) -> None:
        write = self._writes.get(key_of(obj))
        if write is not None and write.is_shown_by(obj):
            del self._writes[key_of(obj)]
