"""Builds the objects of a TrainJob and applies them (KEP-2170, "Build Phase")."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, TypeAlias

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.trainjob import TRAIN_JOBS, TrainJob
from trainer.api.trainjob_status import ConditionReason, ConditionType
from trainer.api.v1alpha1.decode import is_larger_than_the_model
from trainer.controllers.code_owner import own_code
from trainer.framework.deploying.deployer import RETRY_AFTER, ForeignObjectError, workload_of
from trainer.framework.plugin_api.errors import BuildDefectError, BuildError
from trainer.framework.runtimes.snapshot import SNAPSHOT_LABEL, make_snapshot
from trainer.framework.status.status import JOBS_CREATED, Creation, is_finished
from trainer.kube.client import DeleteOptions
from trainer.kube.errors import (
    NAMESPACE_ERRORS,
    AlreadyExistsError,
    ApiError,
    ConflictError,
    NotFoundError,
    ServerTimeoutError,
    ServiceUnavailableError,
    TooManyRequestsError,
)
from trainer.kube.logger import get_logger
from trainer.kube.objects import is_condition_true, is_controlled_by, key_of, labels_of, name_of, namespace_of, uid_of
from trainer.kube.resource import CONFIG_MAPS

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainer.framework.deploying.deployer import Deployer, Shortfall
    from trainer.framework.pipeline import Pipeline
    from trainer.framework.plugin_api.component import Component
    from trainer.framework.runtimes.runtimes import FoundRuntime, Runtimes
    from trainer.kube.client import Client
    from trainer.kube.objects import Object

_UNREPORTED = (
    *NAMESPACE_ERRORS, ConflictError, ServerTimeoutError, ServiceUnavailableError, TooManyRequestsError
)  # fmt: skip
"""Errors that say nothing about the object: left to the work queue without being reported in the status."""

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Stale:
    """The cache is outdated: the TrainJob has finished or was deleted, and nothing was created again."""


@dataclass(frozen=True, slots=True)
class Deferred:
    """All objects were created just now; the status is written after the objects of other TrainJobs are created."""


@dataclass(frozen=True, slots=True)
class Built:
    """The objects exist."""

    creation: Creation
    error: Exception | None = None
    """Why changes since the last build could not be applied. Defaults to None: they were."""
    retry_after: float | None = None
    """Seconds until a change that the cluster has rejected is tried again. Defaults to never."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The objects do not exist."""

    creation: Creation
    error: Exception | None = None
    """The failure, if a retry may help. Defaults to None: only a change of the TrainJob or its runtime helps."""


Created: TypeAlias = Stale | Deferred | Built | Failed
"""The outcomes of `Creator.create`."""


@dataclass(frozen=True, slots=True)
class _Plan:
    components: list[Component]
    runtime: FoundRuntime | None = None
    """The runtime to store as a snapshot; None if there is a snapshot already."""
    runtime_digest: str = ""
    """Digest of the runtime that the objects were built on. Defaults to an unknown one."""
    is_whole: bool = True
    """Whether the plan has all objects of the TrainJob, so that other children are left over from an earlier build."""
    is_missing: bool = False
    """Whether the cache lacks one of them."""
    has_workload: bool = True
    """Whether the objects that run pods exist, so that the training goes on even if the others cannot be applied."""
    note: str = ""
    """A note for the message of the condition Created."""


class TakeOver(Protocol):
    """Makes the objects of a TrainJob ours that another manager has made."""

    async def __call__(self, train_job: TrainJob, owner: Object, runtimes: Runtimes) -> None:
        """Record the runtime on what runs the pods of the TrainJob, and keep a snapshot of it.

        Raises:
            ConflictError: always, once that is done: the cache does not show it yet.
            BuildError: the runtime is not known.
        """


class Creator:
    """Creates the objects of TrainJobs, and applies changes to them.

    `is_busy` says whether other TrainJobs wait. Without `keeps_digest`, what runs the pods alone records the runtime.
    `take_over` is called for TrainJobs whose pods run on a runtime that is not recorded.
    """

    def __init__(
        self,
        client: Client,
        pipeline: Pipeline,
        runtimes: Runtimes,
        deployer: Deployer,
        is_busy: Callable[[], bool],
        *,
        keeps_digest: bool = True,
        take_over: TakeOver | None = None,
    ) -> None:
        self._take_over = take_over
        self._client = client
        self._pipeline = pipeline
        self._runtimes = runtimes
        self._deployer = deployer
        self._is_busy = is_busy
        self._keeps_digest = keeps_digest

    def created(self, train_job: TrainJob, obj: Object) -> Creation | None:
        """What has been created of a TrainJob whose status does not show it; None if that is not known without a build.

        What runs pods is created last.
        """
        digest = self._deployer.built_on(obj, self._pipeline.suspension(train_job))
        if not digest:
            return None
        kept = digest if self._keeps_digest else ""
        return Creation(True, ConditionReason.JOBS_CREATION_SUCCEEDED, JOBS_CREATED, runtime_digest=kept)

    async def create(self, train_job: TrainJob, obj: Object) -> Created:
        """Build and deploy a TrainJob that has not finished.

        Raises:
            ApiError: it says nothing about the TrainJob, as when the API server is overloaded; the worker knows who
                retries.
        """
        was_created = is_condition_true(obj, ConditionType.CREATED)
        try:
            built_on = self._built_on(train_job, obj)
            # Before the first status of ours: another manager has made it, or this one was stopped.
            was_created = was_created or (built_on is not None and not _recorded(train_job))
            if built_on is None:
                await own_code(self._client, obj)
            plan = await self._plan(train_job, obj, built_on, was_created=was_created)
        except BuildError as error:
            if was_created and await self._is_outdated(obj):
                return Stale()
            return _failed(error, is_retried=isinstance(error, BuildDefectError))
        if was_created and plan.is_missing and await self._is_outdated(obj):
            return Stale()
        created = await self._deploy(obj, plan, exists=was_created and plan.has_workload)
        is_new = plan.is_missing and created.creation.succeeded and created.creation.is_whole
        # In a burst, pods start earlier if first statuses are written after the objects of all TrainJobs are created.
        if is_new and self._is_busy() and train_job.spec.active_deadline_seconds is None:
            return Deferred()
        return created

    async def _plan(self, train_job: TrainJob, obj: Object, built_on: str | None, *, was_created: bool) -> _Plan:
        try:
            _check_bounds(obj)
            if built_on == "" and self._take_over is not None:
                await self._take_over(train_job, obj, self._runtimes)
            found = await self._runtimes.find(train_job, built_on=built_on or "", is_built=built_on is not None)
            components = [
                replace(each, runtime_digest=found.digest) if each.runs_pods else each
                for each in self._pipeline.build(train_job, found.runtime)
            ]
            missing = self._deployer.missing(components)
            workload = workload_of(components)
            return _Plan(
                components,
                None if found.is_snapshot else found,
                runtime_digest=found.digest,
                is_missing=bool(missing),
                has_workload=not any(each is component for each in missing for component in workload),
                note=_former(found) if found.is_former else "",
            )
        except BuildError as error:
            existing = self._pipeline.suspension(train_job) if was_created else []
            if not existing:
                raise
            # The training goes on: only suspend is applied to its objects.
            note = f"; later changes, except of suspend, are not applied: {error}"
            return _Plan(existing, is_whole=False, note=note)

    def _built_on(self, train_job: TrainJob, obj: Object) -> str | None:
        """The digest of the runtime that the TrainJob was built on, by its status or by the objects that run pods.

        Empty if it is not recorded, as where another manager has built it; None before it is built.
        """
        return _recorded(train_job) or self._deployer.built_on(obj, self._pipeline.suspension(train_job))

    async def _deploy(self, obj: Object, plan: _Plan, *, exists: bool) -> Built | Failed:
        failure: Exception | None = None
        retry_after: float | None = None
        is_resumed = False
        note = plan.note
        try:
            if plan.runtime is not None:
                await self._keep_snapshot(obj, plan.runtime)
            shortfall = await self._deployer.deploy(obj, plan.components)
            if plan.is_whole:
                await self._deployer.prune(obj, plan.components)
        except _UNREPORTED:
            raise
        except (ApiError, ForeignObjectError, BuildDefectError) as error:
            if not exists or isinstance(error, ForeignObjectError):
                return _failed(error, is_retried=True)
            failure, note = error, f"; later changes are not applied: {error}"
        else:
            note += _note(shortfall)
            is_resumed = shortfall.is_resumed
            retry_after = RETRY_AFTER if shortfall.rejected else None
        message = f"{JOBS_CREATED}{note}"
        creation = Creation(
            True,
            ConditionReason.JOBS_CREATION_SUCCEEDED,
            message,
            is_whole=not note,
            runtime_digest=plan.runtime_digest if self._keeps_digest else "",
            is_resumed=is_resumed,
        )
        return Built(creation, failure, retry_after)

    async def _keep_snapshot(self, owner: Object, found: FoundRuntime) -> None:
        """Store the runtime that the TrainJob is built on, before any other object is created."""
        snapshot = make_snapshot(owner, found.resource, found.object)
        key = name_of(snapshot), namespace_of(snapshot)
        if found.outdated_snapshot is not None:
            options = DeleteOptions(uid=uid_of(found.outdated_snapshot))
            with suppress(NotFoundError):
                await self._client.delete(CONFIG_MAPS, *key, options)
        try:
            await self._client.create(CONFIG_MAPS, snapshot)
        except AlreadyExistsError as error:
            existing = await self._client.get(CONFIG_MAPS, *key)
            if not is_controlled_by(existing, owner):
                raise ForeignObjectError(CONFIG_MAPS, existing) from error
            if SNAPSHOT_LABEL not in labels_of(existing):
                # The cache never shows it. Nothing was built of it, else it would have been taken over.
                await self._client.delete(CONFIG_MAPS, *key, DeleteOptions(uid=uid_of(existing)))
            raise ConflictError(409, f"the cache does not show ConfigMap {key_of(snapshot)} yet") from error
        log.debug("took runtime snapshot", runtime=f"{found.resource.kind}/{name_of(found.object)}")

    async def _is_outdated(self, obj: Object) -> bool:
        """Whether the TrainJob has finished or was deleted, which the cache does not show yet.

        Objects of a finished TrainJob may be deleted at any time and must not be created again.
        """
        try:
            current = await self._client.get(TRAIN_JOBS, name_of(obj), namespace_of(obj))
        except NotFoundError:
            return True
        return uid_of(current) != uid_of(obj) or is_finished(TrainJob.from_object(current))


def _recorded(train_job: TrainJob) -> str | None:
    return None if train_job.status is None else train_job.status.runtime_digest


def _former(found: FoundRuntime) -> str:
    runtime = f"{found.resource.kind}/{name_of(found.object)}"
    return f"; changed too late, delete the TrainJob and submit it again: spec.runtimeRef; the Jobs run {runtime}"


def _check_bounds(obj: Object) -> None:
    """Refuse a TrainJob that exceeds the bounds of the CRD because it was stored under an older one."""
    try:
        TrainJob.check_bounds(obj)
    except InvalidObjectError as error:
        is_model = obj["apiVersion"] == TRAIN_JOBS.api_version
        if errors := [each for each in error.errors if is_model or not is_larger_than_the_model(each)]:
            raise BuildError(*errors) from error


def _note(shortfall: Shortfall) -> str:
    too_late, rejected = ", ".join(shortfall.too_late), "; ".join(shortfall.rejected)
    notes = [f"; changed too late, delete the TrainJob and submit it again: {too_late}"] if too_late else []
    return "".join([*notes, f"; the cluster has rejected a change: {rejected}" if rejected else ""])


def _failed(error: Exception, *, is_retried: bool) -> Failed:
    if isinstance(error, BuildError):
        creation = Creation(False, ConditionReason.JOBS_BUILD_FAILED, f"Failed to build Jobs: {error}")
    else:
        creation = Creation(False, ConditionReason.JOBS_CREATION_FAILED, f"Failed to create Jobs: {error}")
    return Failed(creation, error if is_retried else None)
