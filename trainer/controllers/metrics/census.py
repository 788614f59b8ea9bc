"""How many TrainJobs are in which state, kept up to date by the events of their informer.

Counting 10,000 of them anew at each scrape takes 30 ms, during which the thread that does it and the event loop are in
each other's way; an event takes 6 microseconds, and there are about five in the life of a TrainJob.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from trainer.api.trainjob_status import State
from trainer.controllers.metrics.glimpse import Glimpse
from trainer.controllers.metrics.roster import Roster
from trainer.controllers.metrics.series import Group
from trainer.kube.metrics.cardinality import OTHER

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

    from trainer.controllers.metrics.frameworks import Frameworks
    from trainer.controllers.metrics.milestones import Milestones
    from trainer.kube.cache.cached_object import CachedObject
    from trainer.kube.objects import ObjectKey

_ENDS = frozenset({State.COMPLETE.value, State.FAILED.value})


class _Place(NamedTuple):
    namespace: str
    runtime: str
    state: str
    pending: str
    """Why pods wait; "" where none does."""


class Census:
    """A handler of the informer of TrainJobs, which passes what it sees on to the milestones."""

    def __init__(self, frameworks: Frameworks, milestones: Milestones) -> None:
        self._frameworks = frameworks
        self._milestones = milestones
        self._roster = Roster()
        self._places: dict[ObjectKey, _Place] = {}
        self._counts: dict[_Place, int] = {}

    def count(self) -> Mapping[tuple[str, ...], int]:
        """How many TrainJobs are in which state, by namespace, runtime, framework and state; for any thread."""
        counts: Counter[tuple[str, ...]] = Counter()
        # The copy is made without a turn for the event loop, whatever its length.
        for place, count in tuple(self._counts.items()):
            counts[*self._group(place), place.state] += count
        return counts

    def pending(self) -> Mapping[tuple[str, ...], int]:
        """For how many TrainJobs of a namespace pods wait for a reason; for any thread."""
        counts: Counter[tuple[str, ...]] = Counter()
        for place, count in tuple(self._counts.items()):
            if place.pending:
                counts[place.namespace, place.pending] += count
        return counts

    def latest(self) -> Mapping[tuple[str, ...], int]:
        """1 for each of the TrainJobs that metrics name, by namespace, name, runtime, framework and state."""
        return {
            (key.namespace, key.name, *self._group(place)[1:], place.state): 1
            for key in self._roster.latest()
            if (place := self._places.get(key)) is not None
        }

    def groups(self) -> AbstractSet[tuple[str, str]]:
        """Namespaces and runtimes, as labels have them, of all TrainJobs that there are."""
        groups: set[tuple[str, str]] = set()
        for place in self._counts:
            groups |= {self._group(place)[:2], (place.namespace, OTHER)}
        return groups

    def on_add(self, obj: CachedObject, *, initial: bool) -> None:
        """A TrainJob is there."""
        glimpse = Glimpse.of(obj)
        self._put(obj.key, glimpse)
        self._milestones.appeared(obj, glimpse, initial=initial)

    def on_update(self, old: CachedObject, new: CachedObject) -> None:
        """A TrainJob has changed."""
        if old is new:  # told again, although nothing has happened
            return
        glimpse = Glimpse.of(new)
        self._put(new.key, glimpse)
        self._milestones.changed(new.uid, glimpse)

    def on_delete(self, obj: CachedObject, *, stale: bool) -> None:  # noqa: ARG002 - a handler is called so
        """A TrainJob is gone."""
        self._leave(self._places.pop(obj.key, None))
        self._roster.remove(obj.key)
        self._milestones.gone(obj.uid)

    def _group(self, place: _Place) -> Group:
        return Group(place.namespace, *self._frameworks.labels_of(place.runtime))

    def _put(self, key: ObjectKey, glimpse: Glimpse) -> None:
        old, place = self._places.get(key), _Place(key.namespace, glimpse.runtime, glimpse.state, glimpse.pending)
        if old == place:
            return
        self._leave(old)
        self._places[key] = place
        self._counts[place] = self._counts.get(place, 0) + 1
        if old is None or old.state != place.state:
            self._roster.put(key, has_ended=place.state in _ENDS)

    def _leave(self, place: _Place | None) -> None:
        if place is None:
            return
        left = self._counts[place] - 1
        if left:
            self._counts[place] = left
        else:
            del self._counts[place]  # a series that nothing is in goes
