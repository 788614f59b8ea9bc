"""What is made of objects for pages: once of each version, however many pages show it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.pager import in_slices

_T = TypeVar("_T")


class _Made(NamedTuple, Generic[_T]):
    version: str
    row: _T


class Versions(Generic[_T]):
    """The rows of the objects of TrainJobs.

    Args:
        make: makes the row of an object.
    """

    def __init__(self, make: Callable[[Object], _T]) -> None:
        self._make = make
        self._by_job: dict[str, dict[ObjectKey, _Made[_T]]] = {}

    async def of(self, job: str, objects: Sequence[CachedObject]) -> list[_T]:
        """The rows of all objects of a TrainJob; what it has no more is forgotten.

        Other tasks get turns while thousands of them are read.
        """
        before = self._by_job.get(job, {})
        made: dict[ObjectKey, _Made[_T]] = {}
        async for obj in in_slices(objects):
            known = before.get(obj.key)
            if known is None or known.version != obj.resource_version:
                known = _Made(obj.resource_version, self._make(obj.decode()))
            made[obj.key] = known
        if made:
            self._by_job[job] = made
        else:
            self._by_job.pop(job, None)
        return [each.row for each in made.values()]
