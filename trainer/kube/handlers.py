"""What turns changes of objects into keys of a controller's work queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from trainer.kube.objects import ObjectKey, controller_of, key_of, namespace_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from trainer.kube.objects import Object
    from trainer.kube.resource import Resource

Predicate: TypeAlias = "Callable[[Object | None, Object | None], bool]"
"""Whether a change matters, from the object before (None: it is new) and after (None: it is gone)."""

MapFunction: TypeAlias = "Callable[[Object], Iterable[ObjectKey]]"
"""Keys of the objects that must be reconciled when this one changes."""

Enqueue: TypeAlias = "Callable[[ObjectKey, bool], None]"
"""Takes a key and whether it comes from the initial list."""


def own_key(obj: Object) -> list[ObjectKey]:
    """Map function of the reconciled resource itself."""
    return [key_of(obj)]


def controller_owner(owner: Resource) -> MapFunction:
    """Map function from an object to its controller owner, if that is of resource `owner` in any version."""

    def owner_key(obj: Object) -> list[ObjectKey]:
        reference = controller_of(obj)
        if reference is None or reference.get("kind") != owner.kind:
            return []
        group, _, version = str(reference.get("apiVersion") or "").rpartition("/")
        if group != owner.group or not version:
            return []
        return [ObjectKey(namespace_of(obj) if owner.namespaced else "", reference["name"])]

    return owner_key


class EnqueueMapped:
    """Informer handler that enqueues the keys which a map function gives for the object before and after a change."""

    def __init__(self, enqueue: Enqueue, map_function: MapFunction, predicate: Predicate | None = None) -> None:
        self._enqueue = enqueue
        self._map = map_function
        self._predicate = predicate

    def on_add(self, obj: Object, *, initial: bool) -> None:
        """Enqueue for a new object, with low priority if it is of the initial list."""
        self._change(None, obj, initial=initial)

    def on_update(self, old: Object, new: Object) -> None:
        """Enqueue for both states, so that a former owner learns that it has lost the object."""
        self._change(old, new, initial=False)

    def on_delete(self, obj: Object) -> None:
        """Enqueue for the last known state."""
        self._change(obj, None, initial=False)

    def _change(self, old: Object | None, new: Object | None, *, initial: bool) -> None:
        if self._predicate is not None and not self._predicate(old, new):
            return
        keys = dict.fromkeys(key for obj in (old, new) if obj is not None for key in self._map(obj))
        for key in keys:
            self._enqueue(key, initial)
