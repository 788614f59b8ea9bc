"""The in-memory copy of one resource: one writer, the informer, and any number of read-only listers."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from trainer.kube.objects import ObjectKey, controller_of, key_of, labels_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from trainer.kube.objects import Object
    from trainer.kube.selectors import LabelSelector

Objects: TypeAlias = "list[Object]"
"""`list` inside `Lister` is its method."""

IndexFunction: TypeAlias = "Callable[[Object], Iterable[str]]"
"""The values under which an index finds the object."""

CONTROLLER_UID = "controller-uid"
"""Index that every store has: uid of the controller owner reference."""


def controller_uids(obj: Object) -> list[str]:
    """Index function of `CONTROLLER_UID`."""
    reference = controller_of(obj)
    return [reference["uid"]] if reference is not None and reference.get("uid") else []


class _Index:
    """Keys of objects by the values of one index function."""

    def __init__(self, function: IndexFunction) -> None:
        self._function = function
        self._keys: dict[str, dict[ObjectKey, None]] = {}

    def keys(self, value: str) -> Iterable[ObjectKey]:
        return self._keys.get(value, ())

    def add(self, key: ObjectKey, obj: Object) -> None:
        for value in self._function(obj):
            self._keys.setdefault(value, {})[key] = None

    def remove(self, key: ObjectKey, obj: Object) -> None:
        for value in self._function(obj):
            keys = self._keys.get(value)
            if keys is not None:
                keys.pop(key, None)
                if not keys:
                    del self._keys[value]


class Store:
    """The writing side; keep it private to the informer and hand out `lister`."""

    def __init__(self) -> None:
        self._objects: dict[ObjectKey, Object] = {}
        self._namespaces = _Index(lambda obj: [key_of(obj).namespace])
        self._indexes: dict[str, _Index] = {CONTROLLER_UID: _Index(controller_uids)}
        self.lister = Lister(self)

    def add_index(self, name: str, function: IndexFunction) -> None:
        """Find objects by a further set of values; objects that are already stored are indexed at once.

        Raises:
            ValueError: the name is taken.
        """
        if name in self._indexes:
            raise ValueError(f"index {name!r} exists already")
        index = self._indexes[name] = _Index(function)
        for key, obj in self._objects.items():
            index.add(key, obj)

    def put(self, obj: Object) -> Object | None:
        """Store the object and return what it replaces."""
        key = key_of(obj)
        old = self.remove(key)
        self._objects[key] = obj
        for index in (self._namespaces, *self._indexes.values()):
            index.add(key, obj)
        return old

    def remove(self, key: ObjectKey) -> Object | None:
        """Forget the object and return it, or None when it was not stored."""
        old = self._objects.pop(key, None)
        if old is not None:
            for index in (self._namespaces, *self._indexes.values()):
                index.remove(key, old)
        return old

    def keys(self) -> set[ObjectKey]:
        """Keys of all stored objects."""
        return set(self._objects)

    def get(self, key: ObjectKey) -> Object | None:
        """The stored object."""
        return self._objects.get(key)

    def in_namespace(self, namespace: str | None) -> Iterable[Object]:
        """Objects of one namespace, or all of them."""
        if namespace is None:
            return self._objects.values()
        return (self._objects[key] for key in self._namespaces.keys(namespace))

    def by_index(self, index: str, value: str) -> Iterable[Object]:
        """Objects that the index function of `index` gives `value`.

        Raises:
            KeyError: there is no such index.
        """
        if index not in self._indexes:
            raise KeyError(
                f"no index {index!r}: add it to the informer before it starts; known: {', '.join(self._indexes)}"
            )
        return (self._objects[key] for key in self._indexes[index].keys(value))


class Lister:
    """Read-only handle on a store; objects are shared, so callers must not change them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, key: ObjectKey) -> Object | None:
        """The object with this namespace and name as last seen, or None."""
        return self._store.get(key)

    def list(self, namespace: str | None = None, selector: LabelSelector | None = None) -> Objects:
        """Objects of one namespace (None: of all) whose labels match, in no particular order."""
        objects = self._store.in_namespace(namespace)
        return [obj for obj in objects if selector is None or selector.matches(labels_of(obj))]

    def by_index(self, index: str, value: str) -> Objects:
        """Objects under `value` in an index added with `Informer.add_index`, or in `CONTROLLER_UID`.

        Raises:
            KeyError: there is no such index.
        """
        return list(self._store.by_index(index, value))
