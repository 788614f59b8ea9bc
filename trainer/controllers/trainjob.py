"""Reconciles TrainJobs: builds and deploys their objects, and writes back how they are doing (KEP-2170)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS, TrainJob, is_managed_here
from trainer.api.trainjob_status import ConditionType
from trainer.controllers.creation import Attempt, Creator
from trainer.controllers.lifetime import deadline_exceeded, deadline_of, ended_at_deadline, expiry_of
from trainer.controllers.metrics.trainjobs import TrainJobMetrics
from trainer.controllers.observer import Observer
from trainer.controllers.status_writer import StatusWriter
from trainer.controllers.watching import watch_for_plugins
from trainer.framework.deploying.deployer import FIELD_MANAGER, Deployer
from trainer.framework.runtimes.runtimes import Runtimes
from trainer.framework.status.status import is_finished, next_status
from trainer.kube.client import DeleteOptions
from trainer.kube.clock import timestamp
from trainer.kube.controller.controller import Controller
from trainer.kube.controller.predicates import any_of, generation_changed
from trainer.kube.controller.reconcile import Result
from trainer.kube.errors import NotFoundError, TerminalError
from trainer.kube.events.recorder import EventRecorder
from trainer.kube.objects import is_being_deleted, is_condition_true, name_of, namespace_of, uid_of
from trainer.kube.queue.workqueue import LOW_PRIORITY
from trainer.kube.resource import CONFIG_MAPS
from trainer.kube.selection import Selection

if TYPE_CHECKING:
    from trainer.framework.pipeline import Pipeline
    from trainer.framework.plugin_api.reader import CacheReader
    from trainer.kube.cache.cached_object import CachedObject
    from trainer.kube.manager.manager import Manager
    from trainer.kube.objects import Object, ObjectKey

log = structlog.get_logger(__name__)


class TrainJobController:
    """Registers itself with the manager, which runs it.

    Args:
        manager: provides the client, informers and the clock.
        pipeline: the plugins.
        reader: gets the caches of all resources that the plugins watch.
        namespace: where TrainJobs are looked after; default: everywhere.
        max_concurrent_reconciles: how many TrainJobs at the same time.

    Attributes:
        runtimes: what TrainJobs build on, for admission.
    """

    def __init__(
        self,
        manager: Manager,
        pipeline: Pipeline,
        reader: CacheReader,
        *,
        namespace: str | None = None,
        max_concurrent_reconciles: int = 5,
    ) -> None:
        selection = Selection(namespace=namespace)
        train_jobs = manager.informer(TRAIN_JOBS, selection)
        self._client = manager.client
        self._clock = manager.clock
        self._pipeline = pipeline
        self._train_jobs = train_jobs.lister
        self.runtimes = runtimes = Runtimes(manager, train_jobs, namespace)
        self._deployer = Deployer(manager.client, reader, manager.clock, metrics=manager.metrics)
        self._creator = Creator(manager.client, pipeline, runtimes, self._deployer)
        self._observer = Observer(pipeline, manager.client, manager.clock)
        self._metrics = TrainJobMetrics(manager, namespace)
        self._status = StatusWriter(manager.client, EventRecorder(manager.events, FIELD_MANAGER), self._metrics)
        self._controller = controller = Controller(
            "trainjob", manager, self.reconcile, max_concurrent_reconciles=max_concurrent_reconciles
        )
        # Progress, which is written every few seconds, changes only the status, of which a stall alone matters here.
        controller.reconciles(TRAIN_JOBS, selection=selection, predicate=any_of(generation_changed, _stall_changed))
        controller.watches(TRAINING_RUNTIMES, runtimes.train_jobs_of, selection=selection)
        controller.watches(CLUSTER_TRAINING_RUNTIMES, runtimes.train_jobs_of)
        controller.owns(CONFIG_MAPS, selection=runtimes.snapshots, predicate=_is_gone)
        watch_for_plugins(pipeline.watches(), controller, manager, reader, self._train_jobs, namespace=namespace)

    async def reconcile(self, key: ObjectKey) -> Result | None:
        """Bring the objects of one TrainJob and its status in line with it."""
        obj = self._train_jobs.get(key)
        if obj is None or is_being_deleted(obj) or not is_managed_here(obj):
            return None
        try:
            train_job = TrainJob.from_object(obj)
        except InvalidObjectError as error:
            raise TerminalError(f"{error.subject} does not fit its schema: {error}") from error
        self._metrics.expect(train_job)
        if is_finished(train_job):
            return await self._look_after_finished(train_job, obj)
        now = self._clock.now()
        deadline = deadline_of(train_job, now)
        decided = deadline_exceeded(train_job) if deadline is not None and now >= deadline else None
        # Nothing is started only to be ended at once, and nothing is changed that has ended.
        ended = self._pipeline.outcome(train_job) if is_condition_true(obj, ConditionType.CREATED) else None
        is_over = decided is not None or (ended is not None and ended[0] is not None)
        attempt = Attempt() if is_over else await self._creator.create(train_job, obj)
        if attempt is None:
            # The change of its status, which the cache will show, triggers nothing, and its time to live runs.
            return Result(requeue=True)
        if attempt.is_new and deadline is None and self._controller.is_busy():
            # The pods of others start before people are told of these; who has a deadline must be looked at in time.
            self._metrics.made(train_job)
            self._controller.enqueue(key, priority=LOW_PRIORITY)
            return None
        seen = await self._observer.observe(train_job, obj, attempt.creation, ended=ended, decided=decided)
        status = next_status(train_job, seen, timestamp(now))
        await self._status.write(train_job, obj, status, seen)
        written = train_job.model_copy(update={"status": status})
        left = None if deadline is None else (deadline - now).total_seconds()
        pauses = (
            []
            if is_finished(written)
            else [each for each in (left, seen.requeue_after, attempt.look_again_after) if each is not None]
        )
        for failure in (attempt.error, *seen.errors):
            if failure is None:
                continue
            if pauses:
                # The pauses between retries grow beyond it.
                self._controller.enqueue(key, after=min(pauses))
            raise failure
        if is_finished(written):
            return await self._clean_up(written, obj)
        return Result(requeue_after=min(pauses)) if pauses else None

    async def _look_after_finished(self, train_job: TrainJob, obj: Object) -> Result | None:
        """Nothing is built any more; the counts of the child Jobs may still settle."""
        seen = await self._observer.observe(train_job, obj, None)
        await self._status.write(train_job, obj, next_status(train_job, seen, timestamp(self._clock.now())), seen)
        return await self._clean_up(train_job, obj)

    async def _clean_up(self, train_job: TrainJob, obj: Object) -> Result | None:
        """Delete what a missed deadline has left running, and the TrainJob itself when its time has come."""
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
        """Delete a finished TrainJob, unless it was changed to live longer without the cache knowing yet."""
        try:
            current = await self._client.get(TRAIN_JOBS, name_of(obj), namespace_of(obj))
            expiry = expiry_of(TrainJob.from_object(current))
            if uid_of(current) != uid_of(obj) or expiry is None or expiry > self._clock.now():
                return
            await self._client.delete(TRAIN_JOBS, name_of(obj), namespace_of(obj), DeleteOptions(uid=uid_of(obj)))
        except NotFoundError:
            return
        log.info("deleted finished TrainJob", ttl_seconds=current["spec"].get("ttlSecondsAfterFinished"))


def _stall_changed(old: CachedObject | None, new: CachedObject | None) -> bool:
    return (
        old is not None
        and new is not None
        and is_condition_true(old, ConditionType.STALLED) != is_condition_true(new, ConditionType.STALLED)
    )


def _is_gone(_old: CachedObject | None, new: CachedObject | None) -> bool:
    """Snapshots never change, and their creation is our own."""
    return new is None
