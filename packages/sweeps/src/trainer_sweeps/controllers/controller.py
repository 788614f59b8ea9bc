"""Reconciles OptimizationJobs: creates, stops and records their trials, and writes their status (KEP-3562).

Each round looks at the cache first, and ends there if nothing is to be done. Otherwise the OptimizationJob and its
trials are read from the API server: a cache that lags behind would have trials made anew or too many of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Final

import msgspec

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.client import DeleteOptions, PatchType
from trainer.kube.controller.controller import Controller
from trainer.kube.controller.handlers import own_key
from trainer.kube.controller.predicates import generation_changed
from trainer.kube.controller.reconcile import Result
from trainer.kube.controller.sources import Kind
from trainer.kube.errors import BadRequestError, ForbiddenError, InvalidError, NotFoundError, TerminalError
from trainer.kube.logger import get_logger
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import (
    Object,
    ObjectKey,
    is_being_deleted,
    mapping_at,
    name_of,
    namespace_of,
    resource_version_of,
    uid_of,
)
from trainer.kube.selection import Selection
from trainer.v1alpha1.discovery import Version
from trainer_sweeps.api.optimizationjob import ConditionReason, OptimizationJobStatus, TrialState
from trainer_sweeps.controllers.choice import Choice
from trainer_sweeps.controllers.metrics import SweepSeries
from trainer_sweeps.controllers.reports import SweepReports
from trainer_sweeps.controllers.status import Problem, is_stored, next_status, refused_status
from trainer_sweeps.controllers.sweep import Sweep
from trainer_sweeps.controllers.train_jobs import FIELD_MANAGER, TakenNameError, TrainJobs
from trainer_sweeps.controllers.trial_changes import AnotherPoint, matters, owners_of
from trainer_sweeps.search.suggestion import AlgorithmUnavailableError
from trainer_sweeps.trials.trial import Trial

JOINED: Final = 2.0
"""Seconds in which further points of the curves of a sweep become one look for hopeless trials."""
SLOWLY: Final = 600.0
"""Seconds after which a library that is missing is looked for again."""
SOON: Final = 10.0
"""Seconds after which a name that is about to be free is tried again."""

AT_ONCE: Final = 10
"""Trials that are created in one round; the next one sees whether the sweep was suspended or deleted meanwhile."""

log = get_logger(__name__)


class SweepController:
    """Registers a controller with the manager.

    Args:
        manager: where it is registered.
        namespace: the only one whose objects are looked at. Default: None, all.
        version: of the TrainJobs that the cluster serves, and of its OptimizationJobs. Default: v2alpha1.
        choice: chooses parameters and hopeless trials. Default: by Optuna.
    """

    def __init__(
        self,
        manager: Manager,
        *,
        namespace: str | None = None,
        version: Version = "v2alpha1",
        choice: Choice | None = None,
    ) -> None:
        self._resource = msgspec.structs.replace(OPTIMIZATION_JOBS, version=version)
        self._client = manager.client
        self._clock = manager.clock
        self._began = self._clock.now()
        series = manager.metrics.series(SweepSeries)
        self._reports = SweepReports(manager, series)
        self._choice = choice or Choice(manager.clock, series)
        self._train_jobs = TrainJobs(manager, namespace, version)
        selection = Selection(namespace)
        sweeps = manager.informer(self._resource, selection, optional=True)
        self._sweeps = sweeps.lister
        self._controller = controller = Controller(
            "optimizationjob", manager, self.reconcile, max_concurrent_reconciles=2
        )
        controller.watches_source(Kind(sweeps, own_key, generation_changed))
        controller.watches(TRAIN_JOBS, owners_of, selection=selection, predicate=matters)
        controller.watches(TRAIN_JOBS, self._later, selection=selection, predicate=AnotherPoint(sweeps.lister))

    def _later(self, train_job: CachedObject) -> Iterable[ObjectKey]:
        """Map function of trials that joins the points of many curves."""
        for key in owners_of(train_job):
            self._controller.enqueue(key, after=JOINED)
        return ()

    async def reconcile(self, key: ObjectKey) -> Result | None:
        """Bring the trials of one OptimizationJob, and its status, closer to what it asks for."""
        obj = self._sweeps.get(key)
        if obj is None or is_being_deleted(obj):
            return None
        now = self._clock.now()
        try:
            cached = Sweep.of(obj, self._train_jobs.cached(obj), now, self._began)
            hopeless = await self._choice.hopeless(cached)
            if not hopeless and _is_idle(cached, now):
                self._reports.ended(cached)
                return _again(cached, now)
            sweep = await self._live(cached, now)
        except InvalidObjectError as error:
            raise await self._refuse(obj, error) from error
        if sweep is None:
            return None
        # What follows from the end of a trial follows once it is recorded: its TrainJob may be deleted any time.
        sweep = await self._record(sweep, now)
        await self._stop(sweep, hopeless)
        sweep, problem, retry = await self._begin(sweep)
        sweep = await self._write(sweep, next_status(sweep, now, problem))
        if await self._expire(sweep, now):
            return None
        return _again(sweep, now, retry)

    async def _live(self, cached: Sweep, now: datetime) -> Sweep | None:
        """The sweep as the API server has it; None if it is gone, or another one has its name.

        Raises:
            InvalidObjectError: it has fields that no sweep can be made of.
        """
        name, namespace = name_of(cached.stored), namespace_of(cached.stored)
        try:
            obj = await self._client.get(self._resource, name, namespace)
        except NotFoundError:
            return None
        if uid_of(obj) != uid_of(cached.stored) or is_being_deleted(obj):
            return None
        return Sweep.of(obj, await self._train_jobs.live(obj, cached.train_jobs.values()), now, self._began)

    async def _record(self, sweep: Sweep, now: datetime) -> Sweep:
        """Write the ends of trials, and perhaps that of the sweep, into the status."""
        if not sweep.has_news:
            return sweep
        for trial in sweep.news:
            if trial.state is TrialState.PRUNED and trial.number in sweep.train_jobs:
                await self._train_jobs.stay_pruned(sweep.train_jobs[trial.number])
        return await self._write(sweep, next_status(sweep, now))

    async def _stop(self, sweep: Sweep, hopeless: dict[str, str]) -> None:
        """Suspend trials that are hopeless, whose sweep has failed or is suspended; resume those of a resumed one."""
        for trial in sweep.to_prune:
            await self._train_jobs.prune(sweep.train_jobs[trial.number], "the sweep has failed: see its condition")
        for number in () if sweep.is_finished else sweep.going:
            train_job = sweep.train_jobs[number]
            if (reason := hopeless.get(uid_of(train_job))) is not None:
                await self._train_jobs.prune(train_job, reason)
        for trial in sweep.to_hold:
            await self._train_jobs.hold(sweep.train_jobs[trial.number])
        for trial in sweep.to_release:
            await self._train_jobs.release(sweep.train_jobs[trial.number])

    async def _begin(self, sweep: Sweep) -> tuple[Sweep, Problem | None, Result | None]:
        """Create trials that may run besides those that do, up to the first that cannot be created."""
        missing = sweep.missing
        for number in missing[:AT_ONCE]:
            try:
                parameters = await self._choice.parameters(sweep, number)
            except (AlgorithmUnavailableError, ValueError) as error:
                message = f"trial {number} cannot be chosen: {error}"
                return sweep, Problem(ConditionReason.ALGORITHM_CREATION_FAILED, message), Result(requeue_after=SLOWLY)
            try:
                created = await self._train_jobs.create(sweep, number, parameters)
            except (BadRequestError, ForbiddenError, InvalidError, TakenNameError) as error:
                message = f"trial {number} cannot be created: {error}"
                return sweep, Problem(ConditionReason.TRAIN_JOBS_CREATION_FAILED, message), Result(error=error)
            if created is None:
                log.info("waits until a TrainJob that is deleted is gone, to use its name", trial=number)
                return sweep, None, Result(requeue_after=SOON)
            trial = Trial.of(created, sweep.objective, self._clock.now())
            sweep = sweep.with_running(trial, created)
            self._reports.created(sweep, trial)
            log.info("created trial", trial=number, train_job=trial.name)
        return sweep, None, Result(requeue_after=0) if len(missing) > AT_ONCE else None

    async def _write(self, sweep: Sweep, status: OptimizationJobStatus) -> Sweep:
        """Write a status if it differs, and report what is new; returns the sweep with what the server has then."""
        obj = sweep.stored
        self._reports.ended(sweep)
        if is_stored(status, sweep.status):
            return sweep
        stored = await self._replace(obj, status)
        self._reports.changed(obj, status)
        return sweep.with_stored(stored)

    async def _replace(self, obj: Object, status: OptimizationJobStatus) -> Object:
        """Write a status: fields that the definition lacks are dropped, and would be refused if they were applied."""
        patch: list[Object] = [
            # Neither to another of that name, nor over what is newer than what it was made of.
            {"op": "replace", "path": "/metadata/resourceVersion", "value": resource_version_of(obj)},
            {"op": "add", "path": "/status", "value": status.to_object()},
        ]
        answer = await self._client.patch(
            self._resource,
            name_of(obj),
            patch,
            namespace_of(obj),
            patch_type=PatchType.JSON,
            subresource="status",
            field_manager=FIELD_MANAGER,
        )
        log.info("wrote status", state=status.state, trials=len(status.trials or []))
        return answer

    async def _refuse(self, obj: Object, error: InvalidObjectError) -> TerminalError:
        """Say in its status what is wrong with an OptimizationJob that admission would have refused."""
        status = refused_status(obj, str(error), self._clock.now())
        if not is_stored(status, OptimizationJobStatus.from_object(mapping_at(obj, "status"))):
            await self._replace(obj, status)
            self._reports.changed(obj, status)
        return TerminalError(f"{error.subject} does not fit its schema: {error}")

    async def _expire(self, sweep: Sweep, now: datetime) -> bool:
        """Delete a sweep whose time to live is over; the garbage collector deletes its trials."""
        left = sweep.seconds_to_live(now)
        if left is None or left > 0:
            return False
        obj = sweep.stored
        try:
            await self._client.delete(self._resource, name_of(obj), namespace_of(obj), DeleteOptions(uid=uid_of(obj)))
        except NotFoundError:
            return True
        log.info("deleted finished OptimizationJob", ttl_seconds=sweep.spec.ttl_seconds_after_finished)
        return True


def _is_idle(sweep: Sweep, now: datetime) -> bool:
    """Whether there is nothing to do for a sweep as the cache shows it."""
    left = sweep.seconds_to_live(now)
    if left is not None and left <= 0:
        return False
    if sweep.missing or sweep.to_prune or sweep.to_hold or sweep.to_release:
        return False
    return is_stored(next_status(sweep, now), sweep.status)


def _again(sweep: Sweep, now: datetime, retry: Result | None = None) -> Result | None:
    """When the sweep is looked at again, at the latest: for itself, or to retry what was not possible."""
    own = sweep.seconds_left(now)
    if own is None or retry is None:
        return retry if own is None else Result(requeue_after=own)
    return replace(retry, requeue_after=own if retry.requeue_after is None else min(own, retry.requeue_after))
