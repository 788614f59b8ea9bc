"""Reconciles TrainJobs: builds and deploys their objects, and writes their status (KEP-2170)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS, TrainJob, is_managed_here
from trainer.api.trainjob_status import ConditionType
from trainer.controllers.creation import Built, Creator, Deferred, Failed, Stale
from trainer.controllers.lifetime import deadline_exceeded, deadline_of, ended_at_deadline, expiry_of
from trainer.controllers.metrics.trainjobs import TrainJobMetrics
from trainer.controllers.observer import Observer
from trainer.controllers.status_reporter import StatusReporter
from trainer.framework.deploying.deployer import FIELD_MANAGER, Deployer
from trainer.framework.runtimes.runtimes import Runtimes
from trainer.framework.status.status import has_ended, is_finished, next_status
from trainer.kube.client import DeleteOptions
from trainer.kube.clock import timestamp
from trainer.kube.controller.controller import Controller
from trainer.kube.controller.handlers import owner_key
from trainer.kube.controller.predicates import any_of, generation_changed
from trainer.kube.controller.reconcile import Result
from trainer.kube.controller.sources import Availability, Kind
from trainer.kube.errors import NotFoundError, TerminalError
from trainer.kube.events.recorder import EventRecorder
from trainer.kube.logger import get_logger
from trainer.kube.objects import is_being_deleted, is_condition_true, name_of, namespace_of, uid_of
from trainer.kube.pager import in_slices
from trainer.kube.queue.workqueue import LOW_PRIORITY
from trainer.kube.resource import CONFIG_MAPS
from trainer.kube.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trainer.api.trainjob_status import NodeScale
    from trainer.controllers.creation import TakeOver
    from trainer.framework.pipeline import Pipeline
    from trainer.framework.plugin_api.extension_points import Watch
    from trainer.framework.plugin_api.plugin_context import CacheReader
    from trainer.kube.cache.cached_object import CachedObject
    from trainer.kube.cache.informer import Informer
    from trainer.kube.controller.handlers import MapFunction
    from trainer.kube.manager.manager import Manager
    from trainer.kube.objects import Object, ObjectKey

log = get_logger(__name__)

_FIRST_STATUS = 0.25
"""Seconds that a first status waits in a burst: JobSets say within them how their Jobs are, and one write has both."""


class TrainJobController:
    """Registers a controller with the manager; `runtimes` finds the runtimes of TrainJobs for admission.

    `keeps_digest` says whether the status of TrainJobs has the field `runtimeDigest`. `take_over` is for TrainJobs that
    another manager has made; by default there are none.
    """

    def __init__(
        self,
        manager: Manager,
        pipeline: Pipeline,
        reader: CacheReader,
        *,
        namespace: str | None = None,
        max_concurrent_reconciles: int = 5,
        keeps_digest: bool = True,
        take_over: TakeOver | None = None,
    ) -> None:
        selection = Selection(namespace=namespace)
        train_jobs = manager.informer(TRAIN_JOBS, selection)
        self._client = manager.client
        self._clock = manager.clock
        self._pipeline = pipeline
        self._reader = reader
        self._train_jobs = train_jobs.lister
        self.runtimes = runtimes = Runtimes(manager, train_jobs, namespace)
        self._deployer = Deployer(manager.client, reader, manager.clock, metrics=manager.metrics)
        self._observer = Observer(pipeline, manager.client, manager.clock)
        self._metrics = TrainJobMetrics(manager, namespace)
        self._status = StatusReporter(manager.client, EventRecorder(manager.events, FIELD_MANAGER), self._metrics)
        controller = Controller(
            "trainjob", manager, self.reconcile, max_concurrent_reconciles=max_concurrent_reconciles
        )
        self._creator = Creator(
            manager.client,
            pipeline,
            runtimes,
            self._deployer,
            controller.is_busy,
            keeps_digest=keeps_digest,
            take_over=take_over,
        )
        # Progress is written every few seconds and changes only the status, of which only a stall matters here.
        controller.reconciles(TRAIN_JOBS, selection=selection, predicate=any_of(generation_changed, _stall_changed))
        controller.watches(TRAINING_RUNTIMES, runtimes.train_jobs_of, selection=selection)
        controller.watches(CLUSTER_TRAINING_RUNTIMES, runtimes.train_jobs_of)
        controller.owns(CONFIG_MAPS, selection=runtimes.snapshots, predicate=_is_gone)
        self._watch_for_plugins(pipeline.watches(), controller, manager, namespace)
        self._controller = controller

    def _watch_for_plugins(
        self, watches: Iterable[Watch], controller: Controller, manager: Manager, namespace: str | None
    ) -> None:
        """Make informers for the watches of plugins, attach them to the reader, and reconcile TrainJobs on events.

        When the API server begins or stops to serve an optional kind, all TrainJobs that have not ended are reconciled:
        a plugin may have refused them because of it, or their objects may be gone.
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
            self._reader.attach(informer, watch.indexes)
        for informer in optional:
            controller.watches_source(Availability(informer, self._unfinished))

    async def requeue_unfinished(self) -> None:
        """Reconcile all TrainJobs that have not ended, after a change that no watch shows."""
        async for key in in_slices(self._unfinished()):
            self._controller.enqueue(key)

    def _unfinished(self) -> Iterator[ObjectKey]:
        for key in self._train_jobs.keys():  # noqa: SIM118 - a lister is no mapping
            obj = self._train_jobs.peek(key)
            if obj is not None and not has_ended(obj):
                yield key

    async def reconcile(self, key: ObjectKey) -> Result | None:
        """Create or update the objects of one TrainJob, and write its status."""
        obj = self._train_jobs.get(key)
        if obj is None or is_being_deleted(obj) or not is_managed_here(obj):
            return None
        try:
            train_job = TrainJob.from_object(obj)
        except InvalidObjectError as error:
            self._status.refuse(obj, f"Failed to build Jobs: {error}")
            raise TerminalError(f"{error.subject} does not fit its schema: {error}") from error
        self._metrics.expect(train_job)
        if is_finished(train_job):
            return await self._reconcile_finished(train_job, obj)
        now = self._clock.now()
        deadline = deadline_of(train_job, now)
        is_late = deadline is not None and now >= deadline
        outcome, errors = self._pipeline.outcome(train_job)
        is_created = is_condition_true(obj, ConditionType.CREATED)
        creation = None if outcome is None or is_created else self._creator.created(train_job, obj)
        has_ended = outcome is not None and (is_created or creation is not None)
        failure: Exception | None = None
        retry_after: float | None = None
        # Nothing is created past the deadline, and nothing is changed after the end.
        if not is_late and not has_ended:
            match await self._creator.create(train_job, obj):
                case Stale():
                    # The change of its status will trigger no reconcile, and its time to live runs.
                    return Result(requeue=True)
                case Deferred():
                    self._metrics.jobset_created(train_job)
                    return Result(requeue_after=_FIRST_STATUS, priority=LOW_PRIORITY)
                case Failed(creation, failure):
                    pass
                case Built(creation, failure, retry_after):
                    pass
        if outcome is None and is_late:
            outcome = deadline_exceeded(train_job)
        seen = await self._observer.observe(train_job, obj, creation, outcome, errors)
        status = next_status(train_job, seen, timestamp(now))
        await self._status.report(train_job, obj, status, seen)
        train_job = train_job.model_copy(update={"status": status})
        if seen.scale is not None and not is_finished(train_job):
            await self._state_nodes(train_job, seen.scale)
        failure = failure or next(iter(seen.errors), None)
        if is_finished(train_job):
            return await self._clean_up(train_job, obj) if failure is None else Result(error=failure)
        left = None if deadline is None else (deadline - now).total_seconds()
        pauses = [each for each in (left, seen.requeue_after, retry_after) if each is not None]
        return Result(requeue_after=min(pauses, default=None), error=failure)

    async def _state_nodes(self, train_job: TrainJob, scale: NodeScale) -> None:
        """Write the number of nodes of an elastic TrainJob that states none: autoscalers read it there."""
        trainer, metadata = train_job.spec.trainer, train_job.metadata
        if trainer is not None and trainer.num_nodes is not None:
            return
        replicas: Object = {"spec": {"replicas": scale.nodes}}
        await self._client.patch(
            TRAIN_JOBS, metadata.name, replicas, metadata.namespace, subresource="scale", field_manager=FIELD_MANAGER
        )

    async def _reconcile_finished(self, train_job: TrainJob, obj: Object) -> Result | None:
        seen = await self._observer.observe(train_job, obj)
        await self._status.report(train_job, obj, next_status(train_job, seen, timestamp(self._clock.now())), seen)
        return await self._clean_up(train_job, obj)

    async def _clean_up(self, train_job: TrainJob, obj: Object) -> Result | None:
        await self._deployer.end(obj)
        if ended_at_deadline(train_job):
            await self._deployer.delete(obj, self._pipeline.suspension(train_job))
        expiry = expiry_of(train_job)
        if expiry is None:
            return None
        left = (expiry - self._clock.now()).total_seconds()
        if left > 0:
            return Result(requeue_after=left)
        await self._expire(obj)
        return None

    async def _expire(self, obj: Object) -> None:
        """Delete a finished TrainJob, unless its time to live was extended and the cache is outdated."""
        try:
            current = await self._client.get(TRAIN_JOBS, name_of(obj), namespace_of(obj))
            expiry = expiry_of(TrainJob.from_object(current))
            if uid_of(current) != uid_of(obj) or expiry is None or expiry > self._clock.now():
                return
            await self._client.delete(TRAIN_JOBS, name_of(obj), namespace_of(obj), DeleteOptions(uid=uid_of(obj)))
        except NotFoundError:
            return
        log.info("deleted finished TrainJob", ttl_seconds=current["spec"].get("ttlSecondsAfterFinished"))


_STALLED = f'"{ConditionType.STALLED}"'.encode()


def _stall_changed(old: CachedObject | None, new: CachedObject | None) -> bool:
    if old is None or new is None or not (_STALLED in old.raw or _STALLED in new.raw):
        return False  # as nearly always, without decoding anything
    return is_condition_true(old, ConditionType.STALLED) != is_condition_true(new, ConditionType.STALLED)


def _is_gone(_old: CachedObject | None, new: CachedObject | None) -> bool:
    """Whether a snapshot was deleted; this controller makes all other changes of snapshots itself."""
    return new is None


def _map_function(watch: Watch, controller: Controller) -> MapFunction:
    train_jobs = watch.train_jobs or owner_key(TRAIN_JOBS)
    if not watch.delay:
        return train_jobs

    def enqueue(obj: CachedObject) -> Iterable[ObjectKey]:
        for key in train_jobs(obj):  # the work queue deduplicates keys that are added meanwhile
            controller.enqueue(key, after=watch.delay)
        return ()

    return enqueue
