"""How many TrainJobs are in which state, kept up to date by the events of their informer.

Counting 10,000 of them at each scrape takes 30 ms, during which the thread of the scrape and the event loop compete; an
event takes 6 microseconds, and a TrainJob has about five in its life.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from trainer.api.trainingruntime import FRAMEWORK_LABEL
from trainer.api.trainjob_status import State
from trainer.controllers.metrics.milestones import Milestones, Summary
from trainer.controllers.metrics.series import JobLabels
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.metrics.cardinality import OTHER, BoundedValues, Shares
from trainer.kube.objects import ObjectKey

NONE = "none"
"""Label `runtime` of TrainJobs whose runtime does not exist, and label `framework` of those and of runtimes that name
no framework. Names that people mistype or invent make no series."""

_ENDS = frozenset({State.COMPLETE.value, State.FAILED.value})
_MOST_FRAMEWORKS = 50
"""Values of the label `framework`; a dozen are in use."""
_MOST_NAMES = 1000
"""TrainJobs that metrics name at a time, 50 for a single namespace. Each has a series for each of its states."""


class Frameworks:
    """The framework of each runtime, by the events of the informers of both kinds.

    Frameworks are those that ClusterTrainingRuntimes name. Other names in TrainingRuntimes, which tenants write, are
    `other`: series by framework are shared by all namespaces.
    """

    def __init__(self) -> None:
        self._values = BoundedValues(_MOST_FRAMEWORKS)
        self._by_runtime: dict[str, str] = {}

    def labels_of(self, runtime: str) -> tuple[str, str]:
        """The labels `runtime` and `framework` for the key of a runtime as text; for any thread."""
        framework = self._by_runtime.get(runtime)
        if framework is None:
            return NONE, NONE
        return runtime, self._values.of(framework) if framework else NONE

    def on_add(self, obj: CachedObject, *, initial: bool) -> None:  # noqa: ARG002 - a handler is called so
        """Handle an added runtime."""
        framework = self._by_runtime[str(obj.key)] = obj.labels.get(FRAMEWORK_LABEL) or ""
        if framework and not obj.key.namespace:
            self._values.add(framework)

    def on_update(self, old: CachedObject, new: CachedObject) -> None:  # noqa: ARG002 - a handler is called so
        """Handle a changed runtime."""
        self.on_add(new, initial=False)

    def on_delete(self, obj: CachedObject, *, stale: bool) -> None:  # noqa: ARG002 - a handler is called so
        """Handle a deleted runtime."""
        self._by_runtime.pop(str(obj.key), None)


class RecentChanges:
    """TrainJobs by namespace in the order in which their states changed, for the few that metrics name."""

    def __init__(self) -> None:
        self._going_on: dict[str, dict[ObjectKey, None]] = {}
        self._ended: dict[str, dict[ObjectKey, None]] = {}

    def put(self, key: ObjectKey, *, has_ended: bool) -> None:
        """Record that the state of a TrainJob has changed."""
        self.remove(key)
        namespaces = self._ended if has_ended else self._going_on
        namespaces.setdefault(key.namespace, {})[key] = None

    def remove(self, key: ObjectKey) -> None:
        """A TrainJob was deleted."""
        for namespaces in (self._going_on, self._ended):
            keys = namespaces.get(key.namespace)
            if keys is not None and key in keys:
                del keys[key]
                if not keys:
                    del namespaces[key.namespace]

    def latest(self) -> list[ObjectKey]:
        """The TrainJobs of each namespace that changed last, those that have not ended first; for any thread."""
        shares = Shares(_MOST_NAMES)
        found: list[ObjectKey] = []
        for namespaces in (self._going_on, self._ended):
            # Copying does not yield to the event loop.
            for namespace, keys in tuple(namespaces.items()):
                for key in reversed(tuple(keys)):
                    if not shares.take(namespace):
                        break
                    found.append(key)
        return found


class _Place(NamedTuple):
    namespace: str
    runtime: str
    state: str
    pending: str
    """The reason why pods wait; "" if none waits."""


class StateCounts:
    """Counts TrainJobs by the events of their informer, and passes the events on to the milestones."""

    def __init__(self, frameworks: Frameworks, milestones: Milestones) -> None:
        self._frameworks = frameworks
        self._milestones = milestones
        self._recent = RecentChanges()
        self._places: dict[ObjectKey, _Place] = {}
        self._counts: dict[_Place, int] = {}

    def count(self) -> Mapping[tuple[str, ...], int]:
        """The number of TrainJobs by namespace, runtime, framework and state; for any thread."""
        counts: Counter[tuple[str, ...]] = Counter()
        # Copying does not yield to the event loop, however long the list is.
        for place, count in tuple(self._counts.items()):
            counts[*self._group(place), place.state] += count
        return counts

    def pending(self) -> Mapping[tuple[str, ...], int]:
        """The number of TrainJobs with waiting pods by namespace and reason; for any thread."""
        counts: Counter[tuple[str, ...]] = Counter()
        for place, count in tuple(self._counts.items()):
            if place.pending:
                counts[place.namespace, place.pending] += count
        return counts

    def latest(self) -> Mapping[tuple[str, ...], int]:
        """1 for each of the TrainJobs that metrics name, by namespace, name, runtime, framework and state."""
        return {
            (key.namespace, key.name, *self._group(place)[1:], place.state): 1
            for key in self._recent.latest()
            if (place := self._places.get(key)) is not None
        }

    def groups(self) -> AbstractSet[tuple[str, str]]:
        """The labels `namespace` and `runtime` of all TrainJobs."""
        groups: set[tuple[str, str]] = set()
        for place in self._counts:
            groups |= {self._group(place)[:2], (place.namespace, OTHER)}
        return groups

    def on_add(self, obj: CachedObject, *, initial: bool) -> None:
        """Handle an added TrainJob."""
        summary = Summary.of(obj)
        self._put(obj.key, summary)
        self._milestones.on_add(obj, summary, initial=initial)

    def on_update(self, old: CachedObject, new: CachedObject) -> None:
        """Handle a changed TrainJob."""
        if old is new:  # a resync
            return
        summary = Summary.of(new)
        self._put(new.key, summary)
        self._milestones.on_update(new.uid, summary)

    def on_delete(self, obj: CachedObject, *, stale: bool) -> None:  # noqa: ARG002 - a handler is called so
        """A TrainJob was deleted."""
        self._leave(self._places.pop(obj.key, None))
        self._recent.remove(obj.key)
        self._milestones.on_delete(obj.uid)

    def _group(self, place: _Place) -> JobLabels:
        return JobLabels(place.namespace, *self._frameworks.labels_of(place.runtime))

    def _put(self, key: ObjectKey, summary: Summary) -> None:
        old, place = self._places.get(key), _Place(key.namespace, summary.runtime, summary.state, summary.pending)
        if old == place:
            return
        self._leave(old)
        self._places[key] = place
        self._counts[place] = self._counts.get(place, 0) + 1
        if old is None or old.state != place.state:
            self._recent.put(key, has_ended=place.state in _ENDS)

    def _leave(self, place: _Place | None) -> None:
        if place is None:
            return
        left = self._counts[place] - 1
        if left:
            self._counts[place] = left
        else:
            del self._counts[place]  # so that no series shows 0 for it
