"""The in-memory copy of one resource: one writer, the informer, and any number of read-only listers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.cache.own_writes import OwnWrites
from trainer.kube.logger import get_logger
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.pager import in_slices
from trainer.kube.selectors import LabelSelector

log = get_logger(__name__)

Objects: TypeAlias = "list[Object]"
"""`list` inside `Lister` is its method."""

IndexFunction: TypeAlias = "Callable[[CachedObject], Iterable[str]]"
"""The values under which an index finds the object; where it raises, which is logged, the index has it under none."""

CONTROLLER_UID = "controller-uid"
"""Index that every store has: uid of the controller owner reference."""


def controller_uids(obj: CachedObject) -> tuple[str, ...]:
    """Index function of `CONTROLLER_UID`."""
    for owner in obj.meta.owner_references or ():
        if owner.controller:
            return (owner.uid,)
    return ()


class _Index:
    """Keys of objects by the values of one index function."""

    def __init__(self, name: str, function: IndexFunction) -> None:
        self._name = name
        self._function = function
        self.entries: dict[str, ObjectKey | dict[ObjectKey, None]] = {}
        """Keys by value; many values have one key, for which a dict would be large."""

    def keys(self, value: str) -> Collection[ObjectKey]:
        keys = self.entries.get(value, ())
        return (keys,) if isinstance(keys, ObjectKey) else keys

    def values(self, obj: CachedObject) -> tuple[str, ...]:
        """None for an object on which the function raises: one odd object must not end the cache of all others."""
        try:
            return tuple(self._function(obj))
        except Exception:
            log.exception("index function failed", index=self._name, kind=obj.get("kind"), key=str(obj.key))
            return ()

    def move(self, key: ObjectKey, old: CachedObject | None, new: CachedObject | None) -> None:
        before = () if old is None else self.values(old)
        after = () if new is None else self.values(new)
        if before == after:
            return
        for value in before:
            self._remove(value, key)
        for value in after:
            self._add(value, key)

    def _add(self, value: str, key: ObjectKey) -> None:
        keys = self.entries.setdefault(value, key)
        if isinstance(keys, dict):
            keys[key] = None
        elif keys != key:
            self.entries[value] = {keys: None, key: None}

    def _remove(self, value: str, key: ObjectKey) -> None:
        keys = self.entries.get(value)
        if isinstance(keys, dict):
            keys.pop(key, None)
        if keys in (key, {}):
            del self.entries[value]


class _Indexes(dict[str, _Index]):
    """Indexes by name."""

    def __missing__(self, name: str) -> _Index:
        raise KeyError(f"no index {name!r}: add it to the informer before it starts; known: {', '.join(self)}")


class _Contents:
    """Objects and their indexes, which change together."""

    def __init__(self, functions: dict[str, IndexFunction]) -> None:
        self.objects: dict[ObjectKey, CachedObject] = {}
        self.namespaces = _Index("namespace", lambda obj: (obj.key.namespace,))
        self.indexes = _Indexes({name: _Index(name, function) for name, function in functions.items()})
        self.size = 0

    def put(self, key: ObjectKey, obj: CachedObject) -> CachedObject | None:
        old = self.objects.get(key)
        self.objects[key] = obj
        self.size += len(obj.raw) - (0 if old is None else len(old.raw))
        self._move(key, old, obj)
        return old

    def remove(self, key: ObjectKey) -> CachedObject | None:
        old = self.objects.pop(key, None)
        if old is not None:
            self.size -= len(old.raw)
            self._move(key, old, None)
        return old

    def _move(self, key: ObjectKey, old: CachedObject | None, new: CachedObject | None) -> None:
        if new is None or old is None:
            self.namespaces.move(key, old, new)
        for index in self.indexes.values():
            index.move(key, old, new)


class Store:
    """The writing side; keep it private to the informer and hand out a `Lister`."""

    def __init__(self) -> None:
        self._functions: dict[str, IndexFunction] = {CONTROLLER_UID: controller_uids}
        self._contents = _Contents(self._functions)

    def __len__(self) -> int:
        """Number of objects."""
        return len(self._contents.objects)

    def __iter__(self) -> Iterator[CachedObject]:
        """The objects at this moment."""
        return iter(tuple(self._contents.objects.values()))

    @property
    def size(self) -> int:
        """Bytes of JSON of all objects."""
        return self._contents.size

    def add_index(self, name: str, function: IndexFunction) -> None:
        """Find objects by a further set of values; objects that are already stored are indexed at once.

        Raises:
            ValueError: the name is taken.
        """
        if name in self._functions:
            raise ValueError(f"index {name!r} exists already")
        self._functions[name] = function
        index = self._contents.indexes[name] = _Index(name, function)
        for key, obj in self._contents.objects.items():
            index.move(key, None, obj)

    def put(self, obj: CachedObject) -> CachedObject | None:
        """Store the object and return what it replaces."""
        return self._contents.put(obj.key, obj)

    def remove(self, key: ObjectKey) -> CachedObject | None:
        """Forget the object and return it, or None when it was not stored."""
        return self._contents.remove(key)

    async def replace(self, objects: Iterable[CachedObject]) -> dict[ObjectKey, CachedObject]:
        """Make these the stored objects, at one instant for readers; other tasks get turns before it.

        Returns:
            What was stored before.
        """
        contents = _Contents(self._functions)
        async for obj in in_slices(objects):
            contents.put(obj.key, obj)
        old, self._contents = self._contents, contents
        return old.objects

    def get(self, key: ObjectKey) -> CachedObject | None:
        """The stored object."""
        return self._contents.objects.get(key)

    def in_namespace(self, namespace: str | None) -> Iterable[CachedObject]:
        """Objects of one namespace, or all of them."""
        objects = self._contents.objects
        if namespace is None:
            return objects.values()
        return (objects[key] for key in self._contents.namespaces.keys(namespace))

    def count(self, namespace: str) -> int:
        """Number of objects of one namespace."""
        return len(self._contents.namespaces.keys(namespace))

    def by_index(self, index: str, value: str) -> Sequence[CachedObject]:
        """Objects that the index function of `index` gives `value`.

        Raises:
            KeyError: there is no such index.
        """
        objects = self._contents.objects
        return [objects[key] for key in self._contents.indexes[index].keys(value)]

    def keys_by_index(self, index: str, value: str) -> Collection[ObjectKey]:
        """Their keys.

        Raises:
            KeyError: there is no such index.
        """
        keys = self._contents.indexes[index].entries.get(value, ())
        return (keys,) if isinstance(keys, ObjectKey) else keys

    def index_values(self, index: str, obj: CachedObject) -> Sequence[str]:
        """Under what an index finds an object, whether it is stored or not.

        Raises:
            KeyError: there is no such index.
        """
        return self._contents.indexes[index].values(obj)


class Lister:
    """Read-only handle on a store, in which this process's own writes show at once (see `own_writes`).

    Objects are decoded for each reader and belong to it; `peek`, `keys` and `keys_by_index` do not decode.
    """

    def __init__(self, store: Store, writes: OwnWrites) -> None:
        self._store = store
        self._writes = writes

    def get(self, key: ObjectKey) -> Object | None:
        """The object with this namespace and name as last seen, or None."""
        obj = self.peek(key)
        return None if obj is None else obj.decode()

    def peek(self, key: ObjectKey) -> CachedObject | None:
        """The object as the cache keeps it: cheap, with decoded metadata."""
        return self._writes.newest(key, self._store.get(key))

    def list(self, namespace: str | None = None, selector: LabelSelector | None = None) -> Objects:
        """Objects of one namespace (None: of all) whose labels match, in no particular order."""
        return [obj.decode() for obj in self._in(namespace) if selector is None or selector.matches(obj.labels)]

    def by_index(self, index: str, value: str) -> Objects:
        """Objects under `value` in an index added with `Informer.add_index`, or in `CONTROLLER_UID`.

        Raises:
            KeyError: there is no such index.
        """
        return [obj.decode() for obj in self._under(index, value)]

    def keys_by_index(self, index: str, value: str) -> set[ObjectKey]:
        """Namespace and name of what `by_index` gives; cheap, so that a map function may ask for it.

        Raises:
            KeyError: there is no such index.
        """
        if self._writes.pending:
            return {obj.key for obj in self._under(index, value)}
        return set(self._store.keys_by_index(index, value))

    def keys(self, namespace: str | None = None) -> set[ObjectKey]:
        """Namespace and name of the objects of one namespace (None: of all)."""
        return {obj.key for obj in self._in(namespace)}

    def _in(self, namespace: str | None) -> Sequence[CachedObject]:
        return self._writes.merge(
            self._store.in_namespace(namespace), lambda obj: namespace is None or obj.key.namespace == namespace
        )

    def _under(self, index: str, value: str) -> Sequence[CachedObject]:
        found = self._store.by_index(index, value)
        if not self._writes.pending:
            return found
        values_of = partial(self._store.index_values, index)
        return self._writes.merge(found, lambda obj: value in self._writes.index_values(index, obj, values_of))
