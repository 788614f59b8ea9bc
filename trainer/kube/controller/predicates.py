"""Predicates: which changes of an object matter to a controller.

A predicate gets the object before (None: it is new) and after the change (None: it is gone). Those of this module that
compare the two let new and gone objects pass. A predicate spares reconciles, not memory: what is not to be cached at
all is left out with a `Selection`.

Predicates are functions, combined by functions such as `any_of`. There is no filter for all watches of a controller at
once, as controller-runtime's WithEventFilter: which watch it is good for shows where the watch is declared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from trainer.kube.cache.cached_object import CachedObject

Predicate: TypeAlias = "Callable[[CachedObject | None, CachedObject | None], bool]"
"""Whether a change matters, from the object before (None: it is new) and after (None: it is gone)."""


def resource_version_changed(old: CachedObject | None, new: CachedObject | None) -> bool:
    """Anything has changed; false when the informer only goes through all objects again."""
    return old is None or new is None or old.resource_version != new.resource_version


def generation_changed(old: CachedObject | None, new: CachedObject | None) -> bool:
    """The spec has changed: false for changes of metadata and, where status is a subresource, of status.

    Kinds without generations, such as ConfigMap, pass with every change.
    """
    if old is None or new is None:
        return True
    return old.generation != new.generation if new.generation else resource_version_changed(old, new)


def annotation_changed(old: CachedObject | None, new: CachedObject | None) -> bool:
    """An annotation was added, changed or removed."""
    return old is None or new is None or (old is not new and old.annotations != new.annotations)


def on(
    *,
    added: Callable[[CachedObject], bool] | None = None,
    updated: Callable[[CachedObject, CachedObject], bool] | None = None,
    deleted: Callable[[CachedObject], bool] | None = None,
) -> Predicate:
    """One function for each sort of change; a sort without one passes."""

    def asks(old: CachedObject | None, new: CachedObject | None) -> bool:
        if new is None:
            return deleted is None or old is None or deleted(old)
        if old is None:
            return added is None or added(new)
        return updated is None or updated(old, new)

    return asks


def any_of(*predicates: Predicate) -> Predicate:
    """Passes if one of these predicates passes; they are called in order, up to the first that does."""
    return lambda old, new: any(predicate(old, new) for predicate in predicates)


def all_of(*predicates: Predicate) -> Predicate:
    """Each of these; asked in order, up to the first that says no."""
    return lambda old, new: all(predicate(old, new) for predicate in predicates)
