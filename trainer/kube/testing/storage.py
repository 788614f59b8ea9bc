"""Objects in memory with resource versions, and a history from which watches read."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio

from trainer.kube.client import EventType, Selection, WatchEvent
from trainer.kube.errors import ApiError, GoneError, error_from_status
from trainer.kube.objects import Object, ObjectKey, key_of, labels_of, namespace_of
from trainer.kube.selectors import FieldSelector, LabelSelector

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable

    from trainer.kube.resource import Resource

_Collection: TypeAlias = tuple[str, str]
"""Group and plural: versions of one resource share their objects."""


@dataclass(frozen=True, slots=True)
class _Change:
    """One entry of the history."""

    version: int
    collection: _Collection
    old: Object | None
    new: Object | None


class Storage:
    """Objects by resource and key; what it returns is shared, so callers copy before they change or hand out."""

    def __init__(self, resources: Iterable[Resource]) -> None:
        self.version = 0
        self._oldest = 0
        self._collections: dict[_Collection, dict[ObjectKey, Object]] = {_collection(known): {} for known in resources}
        self._history: list[_Change] = []
        self._changed = anyio.Event()
        self._ends: list[Exception | None] = []

    def serves(self, resource: Resource) -> bool:
        """Whether the resource is known, in any version."""
        return _collection(resource) in self._collections

    def find(self, resource: Resource, key: ObjectKey) -> Object | None:
        """The object under the key."""
        return self._collections[_collection(resource)].get(key)

    def get(self, resource: Resource, key: ObjectKey) -> Object:
        """The object under the key.

        Raises:
            NotFoundError: there is none.
        """
        obj = self.find(resource, key)
        if obj is None:
            raise failure(404, "NotFound", f'{resource.qualified_name} "{key.name}" not found')
        return obj

    def select(self, resource: Resource, selection: Selection) -> list[Object]:
        """The selected objects, by namespace and name."""
        objects = sorted(self._collections[_collection(resource)].items())
        return [obj for _, obj in objects if _selects(selection, obj)]

    def put(self, resource: Resource, obj: Object) -> Object:
        """Store a new or changed object with the next resource version."""
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        collection = self._collections[_collection(resource)]
        self._history.append(_Change(self.version, _collection(resource), collection.get(key_of(obj)), obj))
        collection[key_of(obj)] = obj
        self._notify()
        return obj

    def remove(self, resource: Resource, obj: Object) -> Object:
        """Remove an object; its last state, which watches are told, carries the next resource version."""
        self.version += 1
        gone = copy.deepcopy(obj)
        gone["metadata"]["resourceVersion"] = str(self.version)
        del self._collections[_collection(resource)][key_of(obj)]
        self._history.append(_Change(self.version, _collection(resource), gone, None))
        self._notify()
        return gone

    def compact(self) -> None:
        """Forget the history up to now."""
        self._oldest = self.version

    def end_watches(self, error: Exception | None) -> None:
        """End all open watches, cleanly or with an error."""
        self._ends.append(error)
        self._notify()

    async def events(self, resource: Resource, selection: Selection, version: str) -> AsyncGenerator[WatchEvent, None]:
        """What a watch from this resource version is told.

        Raises:
            GoneError: the history does not reach back so far.
        """
        ends = len(self._ends)
        if version in {"", "0"}:
            version = str(self.version)
            for obj in self.select(resource, selection):
                yield WatchEvent(EventType.ADDED, copy.deepcopy(obj))
        elif int(version) < self._oldest:
            raise GoneError(410, f"too old resource version: {version} ({self._oldest})", reason="Expired")
        position = sum(change.version <= int(version) for change in self._history)
        while True:
            while position < len(self._history):
                event = _event(self._history[position], _collection(resource), selection)
                position += 1
                if event is not None:
                    yield event
            if len(self._ends) > ends:
                if (error := self._ends[ends]) is not None:
                    raise error
                return
            await self._changed.wait()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


def failure(code: int, reason: str, message: str) -> ApiError:
    """The typed error for a Status with these fields."""
    return error_from_status(code, {"kind": "Status", "code": code, "reason": reason, "message": message})


def _collection(resource: Resource) -> _Collection:
    return resource.group, resource.plural


def _event(change: _Change, collection: _Collection, selection: Selection) -> WatchEvent | None:
    """How a change looks to a watch, whose selection the object may have entered or left."""
    if change.collection != collection:
        return None
    before = change.old is not None and _selects(selection, change.old)
    after = change.new is not None and _selects(selection, change.new)
    if not before and not after:
        return None
    kind = EventType.DELETED if not after else EventType.MODIFIED if before else EventType.ADDED
    obj = copy.deepcopy(change.new if change.new is not None else change.old)
    assert obj is not None
    return WatchEvent(kind, obj)


def _selects(selection: Selection, obj: Object) -> bool:
    if selection.namespace and namespace_of(obj) != selection.namespace:
        return False
    if not LabelSelector.parse(selection.label_selector).matches(labels_of(obj)):
        return False
    fields = FieldSelector.parse(selection.field_selector)
    return fields.matches({path: _field(obj, path) for path, _, _ in fields.requirements})


def _field(obj: Object, path: str) -> str:
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return "" if value is None else str(value)
