"""Reconciles TrainJobs: builds and deploys their objects, and writes back how they are doing (KEP-2170)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOB_CONTROLLER, TRAIN_JOBS, TrainJob
from trainer.api.trainjob_status import ConditionReason, ConditionType
from trainer.controllers.observer import Observer
from trainer.controllers.status_writer import StatusWriter
from trainer.framework.deployer import FIELD_MANAGER, Deployer
from trainer.framework.errors import BuildError, ForeignObjectError
from trainer.framework.runtimes import Runtimes
from trainer.framework.status import Creation, is_finished, next_status
from trainer.kube.clock import timestamp
from trainer.kube.controller.controller import Controller
from trainer.kube.controller.predicates import generation_changed
from trainer.kube.errors import (
    ApiError,
    ConflictError,
    NotFoundError,
    ServerTimeoutError,
    ServiceUnavailableError,
    TerminalError,
    TooManyRequestsError,
)
from trainer.kube.events.recorder import EventRecorder
from trainer.kube.objects import is_being_deleted, is_condition_true, name_of, namespace_of, uid_of
from trainer.kube.selection import Selection

if TYPE_CHECKING:
    from trainer.framework.component import Component
    from trainer.framework.pipeline import Pipeline
    from trainer.framework.reader import CacheReader
    from trainer.kube.manager.manager import Manager
    from trainer.kube.objects import Object, ObjectKey

_TRANSIENT = (ConflictError, ServerTimeoutError, ServiceUnavailableError, TooManyRequestsError)
"""Answers that say nothing about the object: retried without telling the user."""


@dataclass(frozen=True, slots=True)
class _Attempt:
    """What came of building and deploying."""

    creation: Creation | None
    error: Exception | None = None
    """A failure that a retry may mend."""


class TrainJobController:
    """Registers itself with the manager, which runs it.

    Args:
        manager: provides the client, informers and the clock.
        pipeline: the plugins.
        reader: gets the caches of all resources that the plugins watch.
        namespace: where TrainJobs are looked after; default: everywhere.
        max_concurrent_reconciles: how many TrainJobs at the same time.
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
        self._runtimes = Runtimes(manager, train_jobs, selection)
        self._deployer = Deployer(manager.client, reader)
        self._observer = Observer(pipeline)
        self._status = StatusWriter(manager.client, EventRecorder(manager.events, FIELD_MANAGER))
        controller = Controller(
            "trainjob", manager, self.reconcile, max_concurrent_reconciles=max_concurrent_reconciles
        )
        # Progress, which is written every few seconds, changes only the status.
        controller.reconciles(TRAIN_JOBS, selection=selection, predicate=generation_changed)
        controller.watches(TRAINING_RUNTIMES, self._runtimes.train_jobs_of, selection=selection)
        controller.watches(CLUSTER_TRAINING_RUNTIMES, self._runtimes.train_jobs_of)
        for watch in pipeline.watches():
            selection = Selection(namespace, watch.selection.label_selector, watch.selection.field_selector)
            if watch.triggers:
                controller.owns(watch.resource, selection=selection)
            reader.attach(watch.resource, manager.informer(watch.resource, selection).lister)

    async def reconcile(self, key: ObjectKey) -> None:
        """Bring the objects of one TrainJob and its status in line with it."""
        obj = self._train_jobs.get(key)
        if obj is None or is_being_deleted(obj) or not _is_ours(obj):
            return
        try:
            train_job = TrainJob.from_object(obj)
        except InvalidObjectError as error:
            raise TerminalError(f"{error.subject} does not fit its schema: {error}") from error
        attempt = _Attempt(None) if is_finished(train_job) else await self._create(train_job, obj)
        if attempt is None:
            return
        seen = await self._observer.observe(train_job, obj, attempt.creation)
        await self._status.write(train_job, obj, next_status(train_job, seen, timestamp(self._clock.now())))
        if attempt.error is not None:
            raise attempt.error

    async def _create(self, train_job: TrainJob, obj: Object) -> _Attempt | None:
        """Build and deploy; None when the TrainJob has ended without the cache knowing yet."""
        was_created, note = is_condition_true(obj, ConditionType.CREATED), ""
        try:
            components = self._pipeline.build(train_job, self._runtimes.of(train_job))
        except BuildError as error:
            if not was_created:
                message = f"Failed to build Jobs: {error}"
                return _Attempt(Creation(False, ConditionReason.JOBS_BUILD_FAILED, message))
            # What exists goes on, whatever has become of the runtime since then.
            components = self._pipeline.suspension(train_job)
            note = f"; later changes, except of suspend, are not applied: {error}"
        exists = was_created and not self._deployer.missing(components)
        if was_created and not exists and await self._is_outdated(obj):
            return None
        return await self._deploy(obj, components, exists=exists, note=note)

    async def _deploy(self, obj: Object, components: list[Component], *, exists: bool, note: str) -> _Attempt:
        failure: Exception | None = None
        try:
            refused = await self._deployer.deploy(obj, components)
        except _TRANSIENT:
            raise
        except (ApiError, ForeignObjectError) as error:
            if not exists or isinstance(error, ForeignObjectError):
                message = f"Failed to create Jobs: {error}"
                return _Attempt(Creation(False, ConditionReason.JOBS_CREATION_FAILED, message), error)
            failure, note = error, f"; later changes are not applied: {error}"
        else:
            if refused:
                note += f"; changed too late, delete the TrainJob and submit it again: {', '.join(refused)}"
        message = f"Succeeded to create Jobs{note}"
        return _Attempt(Creation(True, ConditionReason.JOBS_CREATION_SUCCEEDED, message), failure)

    async def _is_outdated(self, obj: Object) -> bool:
        """Whether a TrainJob whose objects are gone has ended or gone as well, unknown to the cache.

        Objects of a finished TrainJob may be deleted at any time and must not be created again.
        """
        try:
            current = await self._client.get(TRAIN_JOBS, name_of(obj), namespace_of(obj))
        except NotFoundError:
            return True
        return uid_of(current) != uid_of(obj) or is_finished(TrainJob.from_object(current))


def _is_ours(obj: Object) -> bool:
    return ((obj.get("spec") or {}).get("managedBy") or TRAIN_JOB_CONTROLLER) == TRAIN_JOB_CONTROLLER
