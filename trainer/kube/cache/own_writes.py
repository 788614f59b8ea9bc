"""Read your own writes: what this process has written shows in its cache at once.

An informer lags behind the API server. A reconcile that decides from the bare cache would create an object twice, or
count it twice, when it is requeued before its own write has come back. `OwnWrites` lays the answers of the server over
the store until the watch has shown them or something newer. What is in the store itself stays what the watch says, so
handlers see the states of the server in its order.

Resource versions of one resource are comparable numbers (Kubernetes 1.35, KEP-5504). An answer with another kind of
version, as an aggregated API server may give, is not laid over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from trainer.kube.bounded_dict import BoundedDict
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.clock import Clock
from trainer.kube.objects import ObjectKey

EXPIRY = 300.0
"""Seconds after which the end of an object is forgotten that the watch never shows; all else ends with a bookmark."""

REMEMBERED_DELETIONS = 4096
"""So many latest deletions are known to answers that arrive after the watch has shown the end of their object."""


@dataclass(frozen=True, slots=True)
class _Write:
    obj: CachedObject | None
    """The object to show; None if it was deleted or is no longer selected."""
    uid: str
    version: int
    gone: bool
    """Whether the object has ended, so that no answer about it brings it back."""
    at: float
    index_values: dict[str, Sequence[str]] = field(default_factory=dict)
    """Under what each index finds the object, found out once however often readers ask the index."""


class OwnWrites:
    """Answers of the server to writes of this process that the store does not show yet."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.pending: dict[ObjectKey, _Write] = {}
        """Writes that the store does not show yet."""
        self._deleted: BoundedDict[ObjectKey, int] = BoundedDict(REMEMBERED_DELETIONS)
        self._caught_up = 0

    def wrote(self, obj: CachedObject, cached: CachedObject | None, *, selected: bool) -> bool:
        """Note the answer to a create, update, patch or apply.

        Args:
            obj: the answer.
            cached: what the store has under its key.
            selected: whether the object belongs into the store.

        Returns:
            Whether a list has come before the answer and shows that there is no such object any more.
        """
        version = version_of(obj)
        if version is None:
            return False
        shown = -1 if cached is None else version_of(cached) or -1
        if version <= max(self._caught_up, self._deleted.get(obj.key, -1), shown):
            # Where another has taken its name, the handlers know only that one.
            return selected and cached is None and self._deleted.get(obj.key, -1) < version
        present = self.pending.get(obj.key)
        if present is not None and (present.version > version or (present.gone and present.uid == obj.uid)):
            return False
        if not selected and cached is None:
            self.pending.pop(obj.key, None)
            return False
        self.pending[obj.key] = _Write(obj if selected else None, obj.uid, version, gone=False, at=self._now())
        return False

    def deleted(self, obj: CachedObject) -> None:
        """Note that the server has said that an object is gone; one that waits for its end has been `wrote`.

        Args:
            obj: its last state as readers know it.
        """
        self.pending[obj.key] = _Write(None, obj.uid, version_of(obj) or 0, gone=True, at=self._now())

    def newest(self, key: ObjectKey, cached: CachedObject | None) -> CachedObject | None:
        """The object that a reader of this key sees."""
        write = self.pending.get(key)
        if write is None:
            return cached
        if write.gone and self._now() - write.at > EXPIRY:
            del self.pending[key]
            return cached
        return write.obj

    def merge(self, cached: Iterable[CachedObject], belongs: Callable[[CachedObject], bool]) -> Sequence[CachedObject]:
        """The stored objects with the writes laid over.

        Args:
            cached: objects of the store for which `belongs` is true.
            belongs: tells the same of an object that was written.
        """
        if not self.pending:
            return tuple(cached)
        found = {obj.key: obj for obj in cached}
        for key in tuple(self.pending):
            newest = self.newest(key, found.get(key))
            if newest is not None and belongs(newest):
                found[key] = newest
            else:
                found.pop(key, None)
        return tuple(found.values())

    def index_values(
        self, index: str, obj: CachedObject, find: Callable[[CachedObject], Sequence[str]]
    ) -> Sequence[str]:
        """What `find` says of an object that `newest` shows."""
        write = self.pending.get(obj.key)
        if write is None:  # `newest` has just forgotten a deletion
            return find(obj)
        known = write.index_values
        if index not in known:
            known[index] = find(obj)
        return known[index]

    def observe(self, obj: CachedObject, *, gone: bool) -> None:
        """The watch has shown this state, or the end, of an object."""
        if not gone and not self.pending:
            return
        version = version_of(obj)
        if gone:
            self._deleted[obj.key] = version or 0
        write = self.pending.get(obj.key)
        if write is None:
            return
        # A change of an object that is gone is one from before its end.
        shown = gone if write.gone and write.uid == obj.uid else version is None or version >= write.version
        if shown:
            del self.pending[obj.key]

    def caught_up(self, resource_version: str) -> None:
        """The store shows everything up to this version of the whole collection (a list or a bookmark)."""
        if not resource_version.isdecimal():
            return
        self._caught_up = int(resource_version)
        for key, write in tuple(self.pending.items()):
            if not write.gone and write.version <= self._caught_up:
                del self.pending[key]

    def replaced(
        self, resource_version: str, find: Callable[[ObjectKey], CachedObject | None]
    ) -> Sequence[CachedObject]:
        """The store has been replaced by a list of this version, in which `find` looks up objects.

        Returns:
            What was written before that and has ended since: if no watch has shown it, nobody knows.
        """
        before = self.pending.copy()
        self.caught_up(resource_version)
        ended = [
            write.obj
            for key, write in before.items()
            if write.obj is not None and key not in self.pending and _is_other(find(key), write.uid)
        ]
        for key, write in tuple(self.pending.items()):
            listed = find(key)
            if listed is not None:
                self.observe(listed, gone=False)
            elif write.gone and write.version <= self._caught_up:
                del self.pending[key]
        return ended

    def forget(self) -> None:
        """Forget all writes, since none of the written objects exists any more."""
        self.pending.clear()

    def _now(self) -> float:
        return self._clock.monotonic()


def _is_other(obj: CachedObject | None, uid: str) -> bool:
    return obj is None or obj.uid != uid


def version_of(obj: CachedObject) -> int | None:
    """The resource version as a number, or None when it is none."""
    text = obj.resource_version
    return int(text) if text.isdecimal() else None
