"""Controller: turns changes of objects into keys, and keys into calls of one reconcile function.

    Controller("widget", manager, reconcile).reconciles(WIDGETS, predicate=generation_changed).owns(PODS)

The chain declares what is watched; there is no builder beside it. The name is given and not made up from the kind,
since metrics, logs and dashboards go by it.
"""

from __future__ import annotations

from typing import Self

import anyio

from trainer.kube.clock import move_on_after
from trainer.kube.controller.handlers import MapFunction, own_key, owner_key
from trainer.kube.controller.predicates import Predicate
from trainer.kube.controller.reconcile import Reconcile
from trainer.kube.controller.sources import Kind, Source
from trainer.kube.controller.worker import Worker
from trainer.kube.errors import CacheSyncError
from trainer.kube.logger import get_logger
from trainer.kube.manager.manager import Manager
from trainer.kube.manager.runnable_group import sole_failure
from trainer.kube.metrics.controllers import ControllerMetrics
from trainer.kube.objects import ObjectKey
from trainer.kube.queue.workqueue import LOW_PRIORITY, WorkQueue
from trainer.kube.resource import Resource
from trainer.kube.selection import EVERYTHING, Selection

log = get_logger(__name__)

CACHE_SYNC_TIMEOUT = 120.0
"""Seconds until all sources must have synced, as in controller-runtime; long enough for large lists."""


class Controller:
    """Calls `reconcile` for each key that a source yields, never twice at once for the same key.

    Constructing it registers it with the manager, which runs it in the process that leads, once all informers have
    synced. `worker` documents how the outcome of a reconcile is handled, and what its log events carry. Changes of
    objects pass the backlog of the initial list, which comes with `workqueue.LOW_PRIORITY`.

    Args:
        name: unique in the manager; label of metrics and log events.
        manager: provides informers, clock and metrics, and runs the controller.
        reconcile: see `Reconcile`; it may rely on the informers of this manager having synced.
        max_concurrent_reconciles: number of workers. Default: 1, since a reconcile that waits keeps only its own key.

    Raises:
        ValueError: the manager has a controller of this name, or there would be no worker.
    """

    def __init__(
        self,
        name: str,
        manager: Manager,
        reconcile: Reconcile,
        *,
        max_concurrent_reconciles: int = 1,
    ) -> None:
        if max_concurrent_reconciles < 1:
            raise ValueError(f"controller {name!r}: max_concurrent_reconciles must be at least 1")
        self.name = name
        self._manager = manager
        self._reconcile = reconcile
        self._workers = max_concurrent_reconciles
        self._for: Resource | None = None
        self._sources: list[Source] = []
        self._is_fed_by_hand = False
        self._is_started = False
        self._is_stopped = False
        self._syncing: anyio.CancelScope | None = None
        manager.register(self)
        self._queue: WorkQueue[ObjectKey] = WorkQueue(name, clock=manager.clock, metrics=manager.metrics)
        self._metrics = ControllerMetrics(manager.metrics, name)
        self._metrics.max_concurrent_reconciles.set(max_concurrent_reconciles)

    def reconciles(
        self, resource: Resource, *, selection: Selection = EVERYTHING, predicate: Predicate | None = None
    ) -> Self:
        """Reconcile the objects of this resource; changes for which `predicate` is false are ignored.

        Raises:
            ValueError: the controller reconciles something already.
        """
        if self._for is not None:
            raise ValueError(f"controller {self.name!r} already reconciles {self._for.qualified_name}")
        self._for = resource
        return self.watches(resource, own_key, selection=selection, predicate=predicate)

    def owns(
        self,
        resource: Resource,
        *,
        selection: Selection = EVERYTHING,
        predicate: Predicate | None = None,
        optional: bool = False,
    ) -> Self:
        """Reconcile the controller owner of each changed object, if it is of the resource given to `reconciles`.

        Before and after the change, so that an owner also learns that it has lost an object.

        Raises:
            ValueError: `reconciles` has not been called.
        """
        if self._for is None:
            raise ValueError(f"controller {self.name!r}: call reconciles() before owns()")
        return self.watches(resource, owner_key(self._for), selection=selection, predicate=predicate, optional=optional)

    def watches(
        self,
        resource: Resource,
        map_function: MapFunction,
        *,
        selection: Selection = EVERYTHING,
        predicate: Predicate | None = None,
        optional: bool = False,
    ) -> Self:
        """Reconcile the keys that `map_function` gives for each changed object, before and after the change.

        `Selection(metadata_only=True)` saves most of the memory where nobody reads more than metadata. With `optional`
        the controller starts and works although the API server does not serve the kind (yet); `sources.Availability`
        requeues keys when that changes.
        """
        informer = self._manager.informer(resource, selection, optional=optional)
        return self.watches_source(Kind(informer, map_function, predicate))

    def watches_source(self, source: Source) -> Self:
        """Reconcile the keys of a source of any kind, such as `Availability`.

        Raises:
            RuntimeError: the controller runs already.
        """
        if self._is_started:
            raise RuntimeError(f"controller {self.name!r} runs already: declare what it watches before")
        self._sources.append(source)
        return self

    def watches_nothing(self) -> Self:
        """Reconcile only what `enqueue` is called with; without this a controller that has no source is refused."""
        self._is_fed_by_hand = True
        return self

    def enqueue(self, key: ObjectKey, *, after: float = 0, priority: int = 0) -> None:
        """Reconcile a key soon, or after so many seconds; ignored once the controller stops."""
        self._check(key)
        self._queue.add_after(key, after, priority)

    def is_busy(self) -> bool:
        """Whether anything waits that has more than `LOW_PRIORITY`, such as objects that have changed."""
        return any(priority > LOW_PRIORITY for priority in self._queue.depths())

    def stop(self) -> None:
        """Hand out no more keys; `run` returns once the reconciles that run have ended."""
        self._queue.shut_down_now()
        self._is_stopped = True
        if self._syncing is not None:
            self._syncing.cancel()

    async def run(self) -> None:
        """Run the sources, wait until they have synced, then reconcile until stopped or cancelled.

        Called by the manager. A reconcile that runs when this is cancelled is cancelled too, and not a failure.

        Raises:
            CacheSyncError: a source did not sync in time; the message names it.
            ValueError: the controller watches nothing.
            RuntimeError: it has been called before.
            Exception: what a source has raised.
        """
        if self._is_started:
            raise RuntimeError(f"controller {self.name!r} has been started before")
        if not self._sources and not self._is_fed_by_hand:
            raise ValueError(
                f"controller {self.name!r} watches nothing: call reconciles(), watches() or one of the like"
            )
        self._is_started = True
        try:
            await self._run()
        except ExceptionGroup as group:
            failure = sole_failure(group)
            if failure is group:
                raise
            raise failure from group

    async def _run(self) -> None:
        worker = self._make_worker()
        async with anyio.create_task_group() as tasks:
            for source in self._sources:
                tasks.start_soon(source.run, self._enqueue, name=f"controller {self.name} source")
            with anyio.CancelScope() as self._syncing:
                if not self._is_stopped:
                    await self._wait_for_sync()
            log.info("started controller", controller=self.name, workers=self._workers)
            async with anyio.create_task_group() as workers:
                for number in range(self._workers):
                    workers.start_soon(worker.run, name=f"controller {self.name} worker {number}")
            tasks.cancel_scope.cancel()
        log.info("stopped controller", controller=self.name)

    async def _wait_for_sync(self) -> None:
        late: Source | None = None
        async with move_on_after(self._manager.clock, CACHE_SYNC_TIMEOUT) as limit:
            for late in self._sources:
                await late.wait_for_sync()
        if limit.cancelled_caught and late is not None:
            raise CacheSyncError(f"controller {self.name!r} waited {CACHE_SYNC_TIMEOUT:g} s: {late.problem}")

    def _make_worker(self) -> Worker:
        identity = {"controller": self.name}
        if self._for is not None:
            identity |= {"controller_group": self._for.group, "controller_kind": self._for.kind}
        return Worker(
            self._reconcile,
            self._queue,
            clock=self._manager.clock,
            metrics=self._metrics,
            identity=identity,
        )

    def _enqueue(self, key: ObjectKey, *, priority: int = 0) -> None:
        self._check(key)
        self._queue.add(key, priority)

    def _check(self, key: ObjectKey) -> None:
        # Whoever made it still shows in the traceback here; a worker would end on it.
        if not isinstance(key, ObjectKey):
            raise TypeError(f"controller {self.name!r} takes keys of type ObjectKey, not {key!r}")
