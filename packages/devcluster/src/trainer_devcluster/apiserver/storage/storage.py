"""Storage: all objects of the cluster, the one resource version, and the recent past of every collection.

Everything runs on one event loop and no method that changes anything awaits, so every change is a transaction. Objects
are immutable once stored: readers share them, writers store a new one. Each change passes through `Storage._commit`,
which hands it to a journal if there is one. Writers go on at once and see each other's changes, so that one wait for
the disk serves many of them; no client sees a change before it is published, which is when it is on disk:
answers wait for `published`, and watchers see only published changes. Without a journal that is at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import anyio
import msgspec

from trainer.kube.client import EventType
from trainer.kube.objects import Object, ObjectKey, metadata_of, resource_version_of
from trainer.kube.resource import Resource
from trainer_kube_testing.api_semantics.paging import CompactedError

DEFAULT_HISTORY = 10_000
DEFAULT_HISTORY_BYTES = 32 * 1024 * 1024
"""Limit of the history in bytes of JSON; in memory objects take about six times that."""
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
    size: int = 0
    """Bytes of the object as JSON."""


State = dict[Partition, dict[ObjectKey, "Object"]]
"""All objects at one moment."""


class ChangeSink(Protocol):
    """The sink that persists changes."""

    def append(self, partition: Partition, change: Change, encoded: bytes) -> None:
        """Take a change in; whoever keeps it calls `Storage.publish` once it is safe.

        Args:
            partition: where the object is kept.
            change: follows the one before without a gap.
            encoded: its object as JSON.
        """


class KeyExistsError(Exception):
    """A creation under a key that is taken."""


class StaleWriteError(Exception):
    """The object has changed, or is gone, since the writer read it: read again and retry."""


class Subscription:
    """Waits for news of a partition; cheaper than an event of its own for each of many changes."""

    def __init__(self) -> None:
        self._news = anyio.Event()

    def wake(self) -> None:
        """Wake the one who waits."""
        self._news.set()

    async def wait(self) -> None:
        """Wait until something has changed since the last time."""
        await self._news.wait()
        self._news = anyio.Event()


@dataclass(slots=True)
class _Collection:
    compacted: int
    """Greatest revision whose change has been dropped."""
    items: dict[ObjectKey, Object] = field(default_factory=dict)
    changes: deque[Change] = field(default_factory=deque)
    history_bytes: int = 0
    changed: anyio.Event = field(default_factory=anyio.Event)
    subscriptions: set[Subscription] = field(default_factory=set)

    def take(self, change: Change, history: int, history_bytes: int) -> None:
        if change.type is EventType.DELETED:
            del self.items[change.key]
        else:
            self.items[change.key] = change.object
        self.changes.append(change)
        self.history_bytes += change.size
        while len(self.changes) > history or (self.history_bytes > history_bytes and len(self.changes) > 1):
            dropped = self.changes.popleft()
            self.history_bytes -= dropped.size
            self.compacted = dropped.revision

    def wake(self) -> None:
        self.changed.set()
        self.changed = anyio.Event()
        for subscription in self.subscriptions:
            subscription.wake()

    def position_after(self, revision: int) -> int:
        """Index of the first kept change that is newer than a revision."""
        low, high = 0, len(self.changes)
        while low < high:
            middle = (low + high) // 2
            if self.changes[middle].revision > revision:
                high = middle
            else:
                low = middle + 1
        return low


class Storage:
    """The objects in memory, with the last changes of every partition."""

    def __init__(
        self,
        *,
        history: int = DEFAULT_HISTORY,
        history_bytes: int = DEFAULT_HISTORY_BYTES,
        revision: int = INITIAL_REVISION,
    ) -> None:
        """Start empty.

        Args:
            history: changes of a partition that are kept.
            history_bytes: of JSON that these may have together; the last one is kept whatever its size.
            revision: the resource version to count from; what was before it counts as forgotten. A storage that takes
                the place of one whose objects are lost has to start beyond it, so that clients notice.
        """
        self._history, self._history_bytes = history, history_bytes
        self._first_revision = self._revision = self._published = revision
        self._collections: dict[Partition, _Collection] = {}
        self._unpublished: deque[tuple[int, _Collection]] = deque()
        self._sink: ChangeSink | None = None
        self._advanced = anyio.Event()

    @property
    def revision(self) -> int:
        """The resource version of the latest change, whatever it was about."""
        return self._revision

    @property
    def published_revision(self) -> int:
        """The resource version of the latest change that clients may see."""
        return self._published

    def state(self) -> State:
        """All objects as they are now."""
        return {partition: dict(collection.items) for partition, collection in self._collections.items()}

    def restore(self, state: State, revision: int) -> None:
        """Fill an empty storage with the state at a revision; what was before it counts as forgotten."""
        self._first_revision = self._revision = self._published = revision
        for partition, items in state.items():
            self._collection(partition).items.update(items)

    def replay(self, partition: Partition, kind: EventType, key: ObjectKey, obj: Object | None, size: int) -> None:
        """Make a change again that has been published before, with the next revision.

        Args:
            partition: where the object is kept.
            kind: what happened.
            key: key of the object.
            obj: the new state; None for a deletion.
            size: bytes of the object as JSON.

        Raises:
            KeyError: the change does not fit the state.
        """
        collection = self._collection(partition)
        previous = None if kind is EventType.ADDED else collection.items[key]
        if kind is EventType.ADDED and key in collection.items:
            raise KeyError(key)
        self._revision += 1
        state = obj if obj is not None else _at_revision(collection.items[key], self._revision)
        collection.take(Change(self._revision, kind, key, state, previous, size), self._history, self._history_bytes)
        self._published = self._revision

    def write_to(self, sink: ChangeSink) -> None:
        """Pass every further change to a sink, and publish it when the sink has stored it."""
        self._sink = sink

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
        if key in self._collection(partition).items:
            raise KeyExistsError(key)
        return self._commit(partition, EventType.ADDED, key, obj, None)

    def update(self, partition: Partition, key: ObjectKey, obj: Object, *, expected: str) -> Object:
        """Replace an object that still has the resource version `expected`; returns it with the new one.

        Raises:
            StaleWriteError: it has another one, or is gone.
        """
        previous = self._current(self._collection(partition), key, expected)
        return self._commit(partition, EventType.MODIFIED, key, obj, previous)

    def delete(self, partition: Partition, key: ObjectKey, *, expected: str) -> Object:
        """Remove an object that still has the resource version `expected`; returns its last state.

        Raises:
            StaleWriteError: it has another one, or is gone.
        """
        previous = self._current(self._collection(partition), key, expected)
        return self._commit(partition, EventType.DELETED, key, previous, previous)

    def changes_since(self, partition: Partition, revision: int, limit: int | None = None) -> list[Change]:
        """Published changes after a revision, oldest first.

        Args:
            partition: whose changes.
            revision: that of the last change that is known already.
            limit: how many changes at most; None for all.

        Raises:
            CompactedError: some of them have been dropped.
        """
        collection = self._collection(partition)
        if revision < collection.compacted:
            raise CompactedError(revision, collection.compacted)
        changes = collection.changes
        if not changes or changes[-1].revision <= revision:
            return []
        start, end = collection.position_after(revision), len(changes)
        if limit is not None:
            end = min(end, start + limit)
        found = [changes[index] for index in range(start, end)]
        while found and found[-1].revision > self._published:
            found.pop()
        return found

    def changed(self, partition: Partition) -> anyio.Event:
        """An event that is set by the next published change of the partition; take it before looking for changes."""
        return self._collection(partition).changed

    @contextmanager
    def subscribed(self, partition: Partition, subscription: Subscription) -> Iterator[None]:
        """Wake a subscription with every published change of a partition until the context closes."""
        subscriptions = self._collection(partition).subscriptions
        subscriptions.add(subscription)
        try:
            yield
        finally:
            subscriptions.discard(subscription)

    def wake(self, partition: Partition) -> None:
        """Wake those who wait for a change of the partition, because something else about it has changed."""
        self._collection(partition).wake()

    def publish(self, revision: int) -> None:
        """Let everybody know of the changes up to a revision."""
        touched: dict[int, _Collection] = {}
        while self._unpublished and self._unpublished[0][0] <= revision:
            _, collection = self._unpublished.popleft()
            touched[id(collection)] = collection
        self._published = revision
        for collection in touched.values():
            collection.wake()
        self._advanced.set()
        self._advanced = anyio.Event()

    async def published(self) -> None:
        """Wait until clients may see everything that the storage holds at the moment."""
        await self.wait_for_revision(self._revision)

    async def wait_for_revision(self, revision: int) -> None:
        """Wait until the changes up to a revision have been made and published."""
        while self._published < revision:
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
        self,
        partition: Partition,
        kind: EventType,
        key: ObjectKey,
        obj: Object,
        previous: Object | None,
    ) -> Object:
        collection = self._collection(partition)
        stored = _at_revision(obj, self._revision + 1)
        # What cannot be written cannot be stored, so nothing is changed before this.
        encoded = msgspec.json.encode(stored)
        self._revision += 1
        change = Change(self._revision, kind, key, stored, previous, len(encoded))
        collection.take(change, self._history, self._history_bytes)
        self._unpublished.append((self._revision, collection))
        if self._sink is None:
            self.publish(self._revision)
        else:
            self._sink.append(partition, change, encoded)
        return stored


def _at_revision(obj: Object, revision: int) -> Object:
    return {**obj, "metadata": {**metadata_of(obj), "resourceVersion": str(revision)}}
