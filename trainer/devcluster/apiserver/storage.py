"""Storage: all objects of the cluster, the one resource version, and the recent past of every collection.

Everything runs on one event loop and no method that changes anything awaits, so every change is a transaction. Objects
are immutable once stored: readers share them, writers store a new one. Each change passes through `Storage._commit`,
which is where a journal that outlives the process has to hook in.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio

from trainer.kube.client import EventType
from trainer.kube.objects import ObjectKey, metadata_of, resource_version_of

if TYPE_CHECKING:
    from trainer.kube.objects import Object
    from trainer.kube.resource import Resource

DEFAULT_HISTORY = 10_000
INITIAL_REVISION = 1


class Partition(NamedTuple):
    """Objects that are kept together: all versions of one resource."""

    group: str
    plural: str

    @classmethod
    def of(cls, resource: Resource) -> Partition:
        """The partition of a resource, whatever its version."""
        return cls(resource.group, resource.plural)


@dataclass(frozen=True, slots=True)
class Change:
    """One stored change."""

    revision: int
    type: EventType
    key: ObjectKey
    object: Object
    """The new state; for a deletion the last state, with the resource version of the deletion."""
    previous: Object | None
    """The state before; None for a creation."""


class KeyExistsError(Exception):
    """A creation under a key that is taken."""


class StaleWriteError(Exception):
    """The object has changed, or is gone, since the writer read it: read again and retry."""


class CompactedError(Exception):
    """The revision is older than the history of the partition."""

    def __init__(self, requested: int, oldest: int) -> None:
        super().__init__(f"too old resource version: {requested} ({oldest})")
        self.requested = requested
        self.oldest = oldest


@dataclass(slots=True)
class _Collection:
    compacted: int
    """Greatest revision whose change has been dropped."""
    items: dict[ObjectKey, Object] = field(default_factory=dict)
    changes: deque[Change] = field(default_factory=deque)
    changed: anyio.Event = field(default_factory=anyio.Event)


class Storage:
    """The objects in memory, with the last `history` changes of every partition."""

    def __init__(self, *, history: int = DEFAULT_HISTORY, revision: int = INITIAL_REVISION) -> None:
        """Start empty.

        Args:
            history: changes of a partition that are kept.
            revision: the resource version to count from; what was before it counts as forgotten. A storage that takes
                the place of one whose objects are lost has to start beyond it, so that clients notice.
        """
        self._history = history
        self._first_revision = self._revision = revision
        self._collections: dict[Partition, _Collection] = {}
        self._advanced = anyio.Event()

    @property
    def revision(self) -> int:
        """The resource version of the latest change, whatever it was about."""
        return self._revision

    def get(self, partition: Partition, key: ObjectKey) -> Object | None:
        """The stored object; shared, never change it."""
        return self._collection(partition).items.get(key)

    def snapshot(self, partition: Partition, revision: int | None = None) -> list[Object]:
        """All objects ordered by namespace and name, now or as they were at a revision.

        Raises:
            CompactedError: the history does not reach back to the revision.
        """
        collection = self._collection(partition)
        items = collection.items if revision is None else self._rewound(collection, revision)
        return [items[key] for key in sorted(items)]

    def create(self, partition: Partition, key: ObjectKey, obj: Object) -> Object:
        """Store a new object; returns it with its resource version.

        Raises:
            KeyExistsError: the key is taken.
        """
        collection = self._collection(partition)
        if key in collection.items:
            raise KeyExistsError(key)
        return self._commit(collection, EventType.ADDED, key, obj, None)

    def update(self, partition: Partition, key: ObjectKey, obj: Object, *, expected: str) -> Object:
        """Replace an object that still has the resource version `expected`; returns it with the new one.

        Raises:
            StaleWriteError: it has another one, or is gone.
        """
        collection = self._collection(partition)
        previous = self._current(collection, key, expected)
        return self._commit(collection, EventType.MODIFIED, key, obj, previous)

    def delete(self, partition: Partition, key: ObjectKey, *, expected: str) -> Object:
        """Remove an object that still has the resource version `expected`; returns its last state.

        Raises:
            StaleWriteError: it has another one, or is gone.
        """
        collection = self._collection(partition)
        previous = self._current(collection, key, expected)
        return self._commit(collection, EventType.DELETED, key, previous, previous)

    def changes_since(self, partition: Partition, revision: int) -> list[Change]:
        """All changes after a revision, oldest first.

        Raises:
            CompactedError: some of them have been dropped.
        """
        collection = self._collection(partition)
        if revision < collection.compacted:
            raise CompactedError(revision, collection.compacted)
        found: list[Change] = []
        for change in reversed(collection.changes):
            if change.revision <= revision:
                break
            found.append(change)
        found.reverse()
        return found

    def changed(self, partition: Partition) -> anyio.Event:
        """An event that is set by the next change of the partition; take it before looking for changes."""
        return self._collection(partition).changed

    async def wait_for_revision(self, revision: int) -> None:
        """Wait until the storage has reached a revision."""
        while self._revision < revision:
            await self._advanced.wait()

    def _collection(self, partition: Partition) -> _Collection:
        collection = self._collections.get(partition)
        if collection is None:
            collection = self._collections[partition] = _Collection(compacted=self._first_revision)
        return collection

    @staticmethod
    def _current(collection: _Collection, key: ObjectKey, expected: str) -> Object:
        current = collection.items.get(key)
        if current is None or resource_version_of(current) != expected:
            raise StaleWriteError(key)
        return current

    @staticmethod
    def _rewound(collection: _Collection, revision: int) -> dict[ObjectKey, Object]:
        if revision < collection.compacted:
            raise CompactedError(revision, collection.compacted)
        items = dict(collection.items)
        for change in reversed(collection.changes):
            if change.revision <= revision:
                break
            if change.previous is None:
                del items[change.key]
            else:
                items[change.key] = change.previous
        return items

    def _commit(
        self, collection: _Collection, kind: EventType, key: ObjectKey, obj: Object, previous: Object | None
    ) -> Object:
        self._revision += 1
        stored = {**obj, "metadata": {**metadata_of(obj), "resourceVersion": str(self._revision)}}
        if kind is EventType.DELETED:
            del collection.items[key]
        else:
            collection.items[key] = stored
        if len(collection.changes) >= self._history:
            collection.compacted = collection.changes.popleft().revision
        collection.changes.append(Change(self._revision, kind, key, stored, previous))
        collection.changed.set()
        collection.changed = anyio.Event()
        self._advanced.set()
        self._advanced = anyio.Event()
        return stored


def writable_copy(value: Any) -> Any:
    """A deep copy of a stored object, to be changed and stored again."""
    if type(value) is dict:
        return {name: writable_copy(entry) for name, entry in value.items()}
    if type(value) is list:
        return [writable_copy(entry) for entry in value]
    return value
