"""The pods and events of the namespaces whose TrainJobs somebody looks at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import msgspec

from trainer.api.jobset_labels import JOBSET_NAME
from trainer.api.jobset_pods import PODS_BY_JOBSET, made_by_jobsets
from trainer.kube.cache.cache import Cache
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.cache.informer import Informer
from trainer.kube.objects import Object, ObjectKey, name_of
from trainer.kube.resource import EVENTS, PODS
from trainer.kube.selection import Selection
from trainer.progress.primary import CANDIDATES, candidates, candidates_of
from trainer.workloads.related_events import INVOLVED, involved_names
from trainer_dashboard.live.nodes import EventRows, NodeRows


@dataclass(frozen=True, slots=True)
class NamespaceCache:
    """The pods and events of a namespace, and what pages show of them."""

    pods: Informer
    """Those of JobSets."""
    events: Informer
    nodes: NodeRows = field(default_factory=NodeRows)
    event_rows: EventRows = field(default_factory=EventRows)

    @property
    def problems(self) -> list[str]:
        """What cannot be shown to anybody, and why."""
        informers = (self.pods, self.events)
        return [f"{each.resource.plural} cannot be watched: {each.last_error}" for each in informers if each.last_error]

    async def nodes_of(self, job: ObjectKey) -> msgspec.Raw:
        """The nodes of a TrainJob, as JSON."""
        return await self.nodes.of(job.name, under(self.pods, PODS_BY_JOBSET, str(job)))

    async def events_of(self, job: Object, names: Collection[str]) -> list[Object]:
        """The events about a TrainJob, see `EventRows`."""
        return await self.event_rows.of(job, under(self.events, INVOLVED, name_of(job)), names)

    def candidates_of(self, key: ObjectKey) -> Sequence[Object]:
        """The few pods of a TrainJob, where it has thousands, among which is the one with its metrics."""
        return self.pods.lister.by_index(CANDIDATES, candidates_of(key))


def under(informer: Informer, index: str, value: str) -> list[CachedObject]:
    """The objects under a value of an index, which need not be decoded."""
    found = map(informer.lister.peek, informer.lister.keys_by_index(index, value))
    return [obj for obj in found if obj is not None]


class NamespaceInformers:
    """A cache of each namespace, shared by all pages about it, which watches as long as there is one."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._open: dict[str, NamespaceCache] = {}
        self._pages: Counter[str] = Counter()

    @contextmanager
    def of(self, namespace: str) -> Iterator[NamespaceCache]:
        """That of a namespace, while the body runs."""
        pods, events = Selection(namespace, label_selector=JOBSET_NAME), Selection(namespace)
        if namespace not in self._open:
            opened = NamespaceCache(self._cache.informer(PODS, pods), self._cache.informer(EVENTS, events))
            opened.pods.add_index(PODS_BY_JOBSET, made_by_jobsets)
            opened.pods.add_index(CANDIDATES, candidates)
            opened.events.add_index(INVOLVED, involved_names)
            self._open[namespace] = opened
        self._pages[namespace] += 1
        try:
            yield self._open[namespace]
        finally:
            self._pages[namespace] -= 1
            if not self._pages[namespace]:
                del self._open[namespace], self._pages[namespace]
                self._cache.remove(PODS, pods)
                self._cache.remove(EVENTS, events)
