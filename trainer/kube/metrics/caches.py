"""Series of caches, which controller-runtime does not show: is the watch alive, and what does the cache cost."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge

from trainer.kube.metrics import Metrics

_LABELS = ("resource", "selection")
_RESTART_REASONS = ("closed", "silent", "error", "gone")


class CacheSeries:
    """Informers by resource and selection ("" for all objects)."""

    def __init__(self, registry: CollectorRegistry) -> None:
        counter = partial(Counter, labelnames=_LABELS, registry=registry)
        gauge = partial(Gauge, labelnames=_LABELS, registry=registry)
        self.events = counter("trainer_kube_watch_events_total", "Watch events received, bookmarks included.")
        self.restarts = Counter(
            "trainer_kube_watch_restarts_total",
            "Watches that ended, by reason: closed in order, silent, error, or too old resource version.",
            (*_LABELS, "reason"),
            registry=registry,
        )
        self.lists = counter("trainer_kube_lists_total", "Complete lists read; only the first is no relist.")
        self.event_age = gauge(
            "trainer_kube_watch_event_age_seconds",
            "Time since the server was last heard of; above 90 the watch is dead.",
        )
        self.objects = gauge("trainer_kube_cache_objects", "Objects in the cache.")
        self.bytes = gauge("trainer_kube_cache_bytes", "JSON bytes of the objects in the cache.")

    def remove(self, resource: str, selection: str) -> None:
        """The informer has ended: its series go."""
        for series in (self.events, self.lists, self.event_age, self.objects, self.bytes):
            series.remove(resource, selection)
        for reason in _RESTART_REASONS:
            self.restarts.remove(resource, selection, reason)


class CacheMetrics:
    """Series of one informer with their labels bound, present from now on."""

    def __init__(self, metrics: Metrics, resource: str, selection: str) -> None:
        series, labels = metrics.series(CacheSeries), (resource, selection)
        self.events = series.events.labels(*labels)
        self.restarts = {reason: series.restarts.labels(*labels, reason) for reason in _RESTART_REASONS}
        self.lists = series.lists.labels(*labels)
        self._event_age = series.event_age.labels(*labels)
        self._objects = series.objects.labels(*labels)
        self._bytes = series.bytes.labels(*labels)

    def observe(
        self, *, event_age: Callable[[], float], objects: Callable[[], float], size: Callable[[], float]
    ) -> None:
        """Have the gauges ask when they are read."""
        self._event_age.set_function(event_age)
        self._objects.set_function(objects)
        self._bytes.set_function(size)
