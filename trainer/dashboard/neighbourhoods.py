"""The pods and events of the namespaces whose TrainJobs somebody looks at."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.api.jobset_labels import JOBSET_NAME
from trainer.kube.resource import EVENTS, PODS
from trainer.kube.selection import Selection
from trainer.workloads.related_events import INVOLVED, involved_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.kube.cache.cache import Cache
    from trainer.kube.cache.cached_object import CachedObject
    from trainer.kube.cache.informer import Informer

PODS_OF_JOBSET = "dashboard-jobset"
"""Index of pods by the name of their JobSet, which is that of the TrainJob."""


def jobset_names(pod: CachedObject) -> tuple[str, ...]:
    """Index function of `PODS_OF_JOBSET`."""
    name = pod.labels.get(JOBSET_NAME)
    return (name,) if name else ()


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """What a namespace has beside its TrainJobs."""

    pods: Informer
    """Those of JobSets."""
    events: Informer


class Neighbourhoods:
    """One of each namespace, shared by all pages about it, and watched as long as there is one."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._open: dict[str, Neighbourhood] = {}
        self._pages: Counter[str] = Counter()

    @contextmanager
    def of(self, namespace: str) -> Iterator[Neighbourhood]:
        """That of a namespace, while the body runs."""
        pods, events = Selection(namespace, label_selector=JOBSET_NAME), Selection(namespace)
        if namespace not in self._open:
            opened = Neighbourhood(self._cache.informer(PODS, pods), self._cache.informer(EVENTS, events))
            opened.pods.add_index(PODS_OF_JOBSET, jobset_names)
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
