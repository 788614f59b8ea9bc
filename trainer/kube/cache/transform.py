"""Transform: what a cache drops of objects before it stores them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.objects import Object


@dataclass(frozen=True, slots=True)
class Transform:
    """A change to objects before a cache stores them, to drop fields that no reader uses."""

    apply: Callable[[Object], Object]
    """Returns the object to store, with the same namespace, name, uid and resourceVersion."""
    larger_than: int = 0
    """Bytes of JSON above which an object is changed; smaller ones are stored without decoding. Default: 0, all."""

    def of(self, obj: CachedObject) -> CachedObject:
        """The object as it is stored.

        Raises:
            ValueError: `apply` has raised, or has changed what identifies the object or its version.
        """
        if len(obj.raw) <= self.larger_than:
            return obj
        try:
            kept = CachedObject.of(self.apply(obj.decode()))
        except Exception as error:
            raise ValueError(f"the transform of {obj.key} failed: {error!r}") from error
        if (kept.key, kept.uid, kept.resource_version) != (obj.key, obj.uid, obj.resource_version):
            raise ValueError(f"the transform of {obj.key} must keep its namespace, name, uid and resourceVersion")
        return kept
