"""Registers the watches of the plugins (KEP-2170, "Startup Phase")."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trainer.api.trainjob import TRAIN_JOBS
from trainer.framework.status.status import has_ended
from trainer.kube.controller.handlers import owner_key
from trainer.kube.controller.sources import Availability, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trainer.framework.plugin_api.extension_points import Watch
    from trainer.framework.plugin_api.reader import CacheReader
    from trainer.kube.cache.cached_object import CachedObject
    from trainer.kube.cache.informer import Informer
    from trainer.kube.cache.store import Lister
    from trainer.kube.controller.controller import Controller
    from trainer.kube.controller.handlers import MapFunction
    from trainer.kube.manager.manager import Manager
    from trainer.kube.objects import ObjectKey


def watch_for_plugins(
    watches: Iterable[Watch],
    controller: Controller,
    manager: Manager,
    reader: CacheReader,
    train_jobs: Lister,
    *,
    namespace: str | None = None,
) -> None:
    """Make informers for the watches of plugins, attach them to the reader, and reconcile TrainJobs on their events.

    When the API server begins or stops to serve an optional kind, all TrainJobs that have not ended are reconciled: a
    plugin may have refused them because of it, or their objects may be gone.

    Args:
        watches: of all plugins.
        controller: of TrainJobs; it must not run yet.
        manager: provides the informers.
        reader: gets their listers.
        train_jobs: all TrainJobs.
        namespace: the only one that is watched. Defaults to all.
    """
    optional: dict[Informer, None] = {}
    for watch in watches:
        # Objects that are not namespaced are always watched.
        selection = replace(watch.selection, namespace=namespace if watch.resource.namespaced else None)
        informer = manager.informer(watch.resource, selection, optional=watch.optional)
        for name, function in watch.indexes.items():
            informer.add_index(name, function)
        if watch.triggers:
            controller.watches_source(Kind(informer, _map_function(watch, controller), watch.predicate))
        if watch.optional:
            optional[informer] = None
        reader.attach(informer)
    for informer in optional:
        controller.watches_source(Availability(informer, lambda: _unfinished(train_jobs)))


def _map_function(watch: Watch, controller: Controller) -> MapFunction:
    map_function = watch.train_jobs or owner_key(TRAIN_JOBS)
    return _delayed(controller, map_function, watch.delay) if watch.delay else map_function


def _delayed(controller: Controller, map_function: MapFunction, seconds: float) -> MapFunction:
    """The same keys after a delay; the work queue deduplicates keys that are added meanwhile."""

    def enqueue(obj: CachedObject) -> Iterable[ObjectKey]:
        for key in map_function(obj):
            controller.enqueue(key, after=seconds)
        return ()

    return enqueue


def _unfinished(train_jobs: Lister) -> Iterator[ObjectKey]:
    for key in train_jobs.keys():  # noqa: SIM118 - a lister is no mapping
        obj = train_jobs.peek(key)
        if obj is not None and not has_ended(obj):
            yield key
