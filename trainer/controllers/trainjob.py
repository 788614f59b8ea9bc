"""Reconciles TrainJobs: builds and deploys their objects, and writes their status (KEP-2170)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS, TrainJob, is_managed_here
from trainer.api.trainjob_status import ConditionType, NodeScale
from trainer.controllers.job import Job, expiry_of
from trainer.controllers.job_objects import JobObjects, TakeOver
from trainer.controllers.job_status import Observer, StatusWriter, soonest
from trainer.controllers.metrics.trainjobs import TrainJobMetrics
from trainer.framework.deploying.deployer import FIELD_MANAGER, Deployer
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.extension_points import Watch
from trainer.framework.plugin_api.plugin_context import CacheReader
from trainer.framework.plugin_api.reports import Outcome
from trainer.framework.runtimes.runtimes import Runtimes
from trainer.framework.startup.dry_runs import DryRuns
from trainer.framework.status.status import Ensured, has_ended, next_status
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.cache.informer import Informer
from trainer.kube.client import DeleteOptions
from trainer.kube.clock import timestamp
from trainer.kube.controller.controller import Controller
from trainer.kube.controller.handlers import MapFunction, owner_key
from trainer.kube.controller.predicates import any_of, generation_changed
from trainer.kube.controller.reconcile import Result
from trainer.kube.controller.sources import Announcer, Availability, Kind
from trainer.kube.errors import NotFoundError, TerminalError
from trainer.kube.events.recorder import EventRecorder
from trainer.kube.logger import get_logger
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import Object, ObjectKey, is_being_deleted, is_condition_true, name_of, namespace_of
from trainer.kube.pager import in_slices
from trainer.kube.queue.workqueue import LOW_PRIORITY
from trainer.kube.resource import CONFIG_MAPS, PODS
from trainer.kube.selection import Selection

log = get_logger(__name__)

_FIRST_STATUS = 0.25
"""Seconds that a first status waits in a burst: JobSets say within them how their Jobs are, and one write has both."""


class TrainJobController:
    """Registers a controller with the manager; `runtimes` finds the runtimes of TrainJobs for admission.

    `keeps_digest` says whether the status of TrainJobs has the field `runtimeDigest`. `take_over` is for TrainJobs that
    another manager has made; by default there are none. `dry_runs` gets those of the plugins; by default they are left
    out.
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
        dry_runs: DryRuns | None = None,
    ) -> None:
        selection = Selection(namespace=namespace)
        train_jobs = manager.informer(TRAIN_JOBS, selection)
        self._client = manager.client
        self._clock = manager.clock
        self._pipeline = pipeline
        self._reader = reader
        self._train_jobs = train_jobs.lister
        self.runtimes = runtimes = Runtimes(manager, train_jobs, namespace, pipeline.gang)
        self._deployer = Deployer(manager.client, reader, manager.clock, metrics=manager.metrics)
        self._observer = Observer(pipeline, manager.client, manager.clock)
        self._metrics = TrainJobMetrics(manager, namespace)
        self._status = StatusWriter(manager, EventRecorder(manager.events, FIELD_MANAGER), self._metrics)
        self._controller = controller = Controller(
            "trainjob", manager, self.reconcile, max_concurrent_reconciles=max_concurrent_reconciles
        )
        self._objects = JobObjects(
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
        of_runtime = self._map(Watch(TRAINING_RUNTIMES, train_jobs=runtimes.train_jobs_of))
        controller.watches(TRAINING_RUNTIMES, of_runtime, selection=selection)
        controller.watches(CLUSTER_TRAINING_RUNTIMES, of_runtime)
        of_snapshot = self._map(Watch(CONFIG_MAPS))
        controller.watches(CONFIG_MAPS, of_snapshot, selection=runtimes.snapshots, predicate=_is_gone)
        self._watch_for_plugins(pipeline.watches(), manager, namespace, dry_runs)

    def _watch_for_plugins(
        self, watches: Iterable[Watch], manager: Manager, namespace: str | None, dry_runs: DryRuns | None
    ) -> None:
        """Make informers for the watches of plugins, attach them to the reader, and reconcile TrainJobs on events.

        When the API server begins or stops to serve an optional kind, or to refuse a field, all TrainJobs that have not
        ended are reconciled: a plugin may have refused them because of it, or their objects may be gone.
        """
        optional: dict[Informer, None] = {}
        pods: dict[Informer, None] = {}
        for watch in watches:
            # Objects that are not namespaced are always watched.
            selection = replace(watch.selection, namespace=namespace if watch.resource.namespaced else None)
            informer = manager.informer(watch.resource, selection, optional=watch.optional)
            for name, function in watch.indexes.items():
                informer.add_index(name, function)
            if watch.resource == PODS:
                pods[informer] = None
            if watch.triggers:
                self._controller.watches_source(Kind(informer, self._map(watch), watch.predicate))
            if watch.optional:
                optional[informer] = None
            if dry_runs is not None:
                dry_runs.add(informer, watch.dry_runs)
            self._reader.attach(informer, watch.indexes)
        for informer in pods:  # once each, however many plugins watch it
            self._metrics.count_disruptions(informer)
        announcers: list[Announcer] = [*optional, *([dry_runs] if dry_runs is not None else [])]
        for announcer in announcers:
            self._controller.watches_source(Availability(announcer, self._all_again))

    def _map(self, watch: Watch) -> MapFunction:
        """The TrainJobs to reconcile after a change; what was not built for one of them has it built again."""
        train_jobs = watch.train_jobs or owner_key(TRAIN_JOBS)

        def enqueue(obj: CachedObject) -> Iterable[ObjectKey]:
            found = list(train_jobs(obj))
            for key in found:
                self._objects.look_again(key, watch.resource, obj.key)
                if watch.delay:  # the work queue deduplicates keys that are added meanwhile
                    self._controller.enqueue(key, after=watch.delay)
            return () if watch.delay else found

        return enqueue

    async def requeue_unfinished(self) -> None:
        """Reconcile all TrainJobs that have not ended, after a change that no watch shows."""
        async for key in in_slices(self._all_again()):
            self._controller.enqueue(key)

    def _all_again(self) -> Iterator[ObjectKey]:
        self._objects.look_again_at_all()
        for key in self._train_jobs.keys():  # noqa: SIM118 - a lister is no mapping
            obj = self._train_jobs.peek(key)
            if obj is not None and not has_ended(obj):
                yield key

    async def reconcile(self, key: ObjectKey) -> Result | None:
        """Create or update the objects of one TrainJob, and write its status."""
        job = self._read(key)
        if job is None:
            return None
        now = self._clock.now()
        if job.is_finished:
            return await self._finish(job, now)
        outcome, errors = self._pipeline.outcome(job.model)
        ensured = await self._ensure(job, outcome, now)
        if ensured is not None and ensured.may_wait:
            self._metrics.jobset_created(job.model)
            return Result(requeue_after=_FIRST_STATUS, priority=LOW_PRIORITY)
        seen = await self._observer.observe(job, ensured, outcome or job.deadline_outcome(now), errors)
        status = next_status(job.model, seen, timestamp(now))
        await self._status.write(job, status, seen)
        job = job.with_status(status)
        if job.is_finished:
            return await self._clean_up(job) if seen.error is None else Result(error=seen.error)
        if seen.scale is not None:
            await self._state_nodes(job.model, seen.scale)
        return Result(requeue_after=soonest(job.seconds_left(now), seen.requeue_after), error=seen.error)

    def _read(self, key: ObjectKey) -> Job | None:
        """The cached TrainJob; None if it is gone, is being deleted, or is managed elsewhere."""
        obj = self._train_jobs.get(key)
        if obj is None or is_being_deleted(obj) or not is_managed_here(obj):
            return None
        try:
            job = Job.of(obj)
        except InvalidObjectError as error:
            self._status.refuse(obj, f"Failed to build Jobs: {error}")
            raise TerminalError(f"{error.subject} does not fit its schema: {error}") from error
        self._metrics.expect(job.model)
        return job

    async def _finish(self, job: Job, now: datetime) -> Result | None:
        """Bring the counts of a TrainJob that has ended up to date, and clean up."""
        seen = await self._observer.observe(job)
        await self._status.write(job, next_status(job.model, seen, timestamp(now)), seen)
        return await self._clean_up(job)

    async def _ensure(self, job: Job, outcome: Outcome | None, now: datetime) -> Ensured | None:
        """Build and apply; nothing is created past the deadline, and nothing is changed after the end."""
        if outcome is not None:
            found = None if job.is_created else self._objects.found(job)
            if found is not None or job.is_created:
                return found
        return None if job.deadline_outcome(now) else await self._objects.ensure(job)

    async def _state_nodes(self, train_job: TrainJob, scale: NodeScale) -> None:
        """Write the number of nodes of an elastic TrainJob that states none: autoscalers read it there."""
        trainer, metadata = train_job.spec.trainer, train_job.metadata
        if trainer is not None and trainer.num_nodes is not None:
            return
        replicas: Object = {"spec": {"replicas": scale.nodes}}
        await self._client.patch(
            TRAIN_JOBS, metadata.name, replicas, metadata.namespace, subresource="scale", field_manager=FIELD_MANAGER
        )

    async def _clean_up(self, job: Job) -> Result | None:
        """Delete the objects that are of no use after the end, and a TrainJob whose time to live is over."""
        await self._deployer.end(job.stored)
        if job.ended_at_deadline:
            await self._deployer.delete(job.stored, self._pipeline.suspension(job.model))
        expiry = expiry_of(job.model)
        if expiry is None:
            return None
        left = (expiry - self._clock.now()).total_seconds()
        if left > 0:
            return Result(requeue_after=left)
        await self._expire(job)
        return None

    async def _expire(self, job: Job) -> None:
        """Delete a finished TrainJob, unless its time to live was extended and the cache is outdated."""
        name, namespace = name_of(job.stored), namespace_of(job.stored)
        try:
            current = Job.of(await self._client.get(TRAIN_JOBS, name, namespace))
            expiry = expiry_of(current.model)
            if current.uid != job.uid or expiry is None or expiry > self._clock.now():
                return
            await self._client.delete(TRAIN_JOBS, name, namespace, DeleteOptions(uid=job.uid))
        except NotFoundError:
            return
        log.info("deleted finished TrainJob", ttl_seconds=current.model.spec.ttl_seconds_after_finished)


_STALLED = f'"{ConditionType.STALLED}"'.encode()


def _stall_changed(old: CachedObject | None, new: CachedObject | None) -> bool:
    if old is None or new is None or not (_STALLED in old.raw or _STALLED in new.raw):
        return False  # as nearly always, without decoding anything
    return is_condition_true(old, ConditionType.STALLED) != is_condition_true(new, ConditionType.STALLED)


def _is_gone(_old: CachedObject | None, new: CachedObject | None) -> bool:
    """Whether a snapshot was deleted; this controller makes all other changes of snapshots itself."""
    return new is None
