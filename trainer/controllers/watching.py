"""Watches what the plugins want to be watched (KEP-2170, "Startup Phase")."""

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
    """Have all that plugins watch cached, read, and lead to reconciles.

    When an optional kind begins to be served, or ceases to be, all TrainJobs that have not ended are looked at again: a
    plugin may have refused them for the lack of it, or have built objects that are gone now.

    Args:
        watches: what the plugins ask for.
        controller: of the TrainJobs; it must not run yet.
        manager: provides the informers.
        reader: gets their listers.
        train_jobs: all TrainJobs.
        namespace: the only one that is watched. Default: all.
    """
    optional: dict[Informer, None] = {}
    for watch in watches:
        # An object of the cluster is in no namespace, and no less of interest.
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
    """The same keys, but later; the work queue makes one of those that come meanwhile."""

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
