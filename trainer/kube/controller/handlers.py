"""Handlers: what turns changes of objects into keys of a controller's work queue."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeAlias

from trainer.kube.cache.cached_object import CachedObject, OwnerReference
from trainer.kube.controller.predicates import Predicate
from trainer.kube.objects import ObjectKey
from trainer.kube.queue.workqueue import LOW_PRIORITY
from trainer.kube.resource import Resource

MapFunction: TypeAlias = "Callable[[CachedObject], Iterable[ObjectKey]]"
"""Keys of the objects that must be reconciled when this one changes; called for its state before and after.

It runs on the event loop between two watch events and must not block. What it raises is logged, and the change is lost
until the next one, or until the informer goes through all objects again.
"""


class Enqueue(Protocol):
    """Puts a key into the work queue of a controller."""

    def __call__(self, key: ObjectKey, *, priority: int = 0) -> None:
        """Have the key reconciled soon; of keys that wait, those with a higher priority come first."""


def own_key(obj: CachedObject) -> list[ObjectKey]:
    """Map function of the reconciled resource itself."""
    return [obj.key]


def owner_key(owner: Resource) -> MapFunction:
    """Map function from an object to its controller owner of one resource, in any version of its group."""

    def owners(obj: CachedObject) -> list[ObjectKey]:
        namespace = obj.key.namespace if owner.namespaced else ""
        return [
            ObjectKey(namespace, reference.name)
            for reference in obj.owner_references
            if reference.controller and _refers_to(reference, owner)
        ]

    return owners


def _refers_to(reference: OwnerReference, owner: Resource) -> bool:
    group, _, version = reference.api_version.rpartition("/")
    return reference.kind == owner.kind and group == owner.group and bool(version)


class EnqueueMapped:
    """Informer handler that enqueues the keys which a map function gives for the object before and after a change.

    Objects of the initial list and unchanged ones, which come when the informer goes through all objects again, get
    `LOW_PRIORITY`. For a deletion that the watch has missed the last known state is mapped.
    """

    def __init__(self, enqueue: Enqueue, map_function: MapFunction, predicate: Predicate | None = None) -> None:
        self._enqueue = enqueue
        self._map = map_function
        self._predicate = predicate

    def on_add(self, obj: CachedObject, *, initial: bool) -> None:
        """Enqueue for a new object."""
        self._change(None, obj, LOW_PRIORITY if initial else 0)

    def on_update(self, old: CachedObject, new: CachedObject) -> None:
        """Enqueue for both states, so that a former owner learns that it has lost the object."""
        self._change(old, new, LOW_PRIORITY if old.resource_version == new.resource_version else 0)

    def on_delete(self, obj: CachedObject, *, stale: bool) -> None:  # noqa: ARG002 - a reconcile looks for itself
        """Enqueue for the last known state."""
        self._change(obj, None, 0)

    def _change(self, old: CachedObject | None, new: CachedObject | None, priority: int) -> None:
        if self._predicate is not None and not self._predicate(old, new):
            return
        keys = dict.fromkeys(() if old is None or old is new else self._map(old))
        if new is not None:
            keys |= dict.fromkeys(self._map(new))
        for key in keys:
            self._enqueue(key, priority=priority)
