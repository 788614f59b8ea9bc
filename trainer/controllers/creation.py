"""Builds the objects of a TrainJob and brings them to the cluster (KEP-2170, "Build Phase")."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import structlog

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.trainjob import TRAIN_JOBS, TrainJob
from trainer.api.trainjob_status import ConditionReason, ConditionType
from trainer.framework.deploying.deployer import ForeignObjectError, workload_of
from trainer.framework.deploying.rejected_changes import RETRY_AFTER
from trainer.framework.plugin_api.errors import BuildError, PluginError, UnexpectedError
from trainer.framework.runtimes.snapshot import make_snapshot
from trainer.framework.status.status import JOBS_CREATED, Creation, is_finished
from trainer.kube.client import DeleteOptions
from trainer.kube.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    NotFoundError,
    ServerTimeoutError,
    ServiceUnavailableError,
    TooManyRequestsError,
)
from trainer.kube.objects import is_condition_true, is_controlled_by, key_of, name_of, namespace_of, uid_of
from trainer.kube.resource import CONFIG_MAPS

if TYPE_CHECKING:
    from trainer.framework.deploying.deployer import Deployer, Shortfall
    from trainer.framework.pipeline import Pipeline
    from trainer.framework.plugin_api.component import Component
    from trainer.framework.runtimes.runtimes import FoundRuntime, Runtimes
    from trainer.kube.client import Client
    from trainer.kube.objects import Object

_TRANSIENT = (ConflictError, ServerTimeoutError, ServiceUnavailableError, TooManyRequestsError)
"""Answers that say nothing about the object: retried without telling the user."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Attempt:
    """What came of building and deploying."""

    creation: Creation | None = None
    """None when nothing was tried."""
    error: Exception | None = None
    """A failure that a retry may mend."""
    look_again_after: float | None = None
    """Seconds until the cluster may accept what it has declined. Defaults to waiting for a change."""
    is_new: bool = False
    """Whether everything has come about just now. Defaults to no."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """What to bring to the cluster."""

    components: list[Component]
    runtime: FoundRuntime | None = None
    """To be kept as a snapshot; None when there is one already, or nothing to keep."""
    runtime_digest: str = ""
    """Of the runtime that they were built on. Defaults to an unknown one."""
    is_whole: bool = True
    """Whether these are all objects of the TrainJob, so that others are left over from an earlier build."""
    is_missing: bool = False
    """Whether one of them does not exist, as far as the cache shows."""
    has_workload: bool = True
    """Whether those that run pods exist: whatever becomes of the rest, the training goes on."""
    note: str = ""
    """For the message of the condition Created."""


class Creator:
    """Brings what a TrainJob asks for to the cluster, and says how that went."""

    def __init__(self, client: Client, pipeline: Pipeline, runtimes: Runtimes, deployer: Deployer) -> None:
        self._client = client
        self._pipeline = pipeline
        self._runtimes = runtimes
        self._deployer = deployer

    async def create(self, train_job: TrainJob, obj: Object) -> Attempt | None:
        """Build and deploy; None when the TrainJob has ended without the cache knowing yet.

        Raises:
            ApiError: the API server has no time for us; the work queue retries.
        """
        was_created = is_condition_true(obj, ConditionType.CREATED)
        try:
            plan = await self._plan(train_job, obj, was_created=was_created)
        except BuildError as error:
            if was_created and await self._is_outdated(obj):
                return None
            return Attempt(_failed(error), error if isinstance(error, PluginError | UnexpectedError) else None)
        if was_created and plan.is_missing and await self._is_outdated(obj):
            return None
        return await self._deploy(obj, plan, exists=was_created and plan.has_workload)

    async def _plan(self, train_job: TrainJob, obj: Object, *, was_created: bool) -> _Plan:
        try:
            _check_bounds(obj)
            found = await self._find_runtime(train_job, obj)
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
            # What exists goes on, whatever is wrong by now.
            note = f"; later changes, except of suspend, are not applied: {error}"
            return _Plan(existing, is_whole=False, note=note)

    async def _find_runtime(self, train_job: TrainJob, obj: Object) -> FoundRuntime:
        """The status says what the TrainJob was built on; before it is written, what runs its pods does."""
        recorded = train_job.status and train_job.status.runtime_digest
        if recorded:
            return await self._runtimes.find(train_job, built_on=recorded)
        digest = self._deployer.built_on(obj, self._pipeline.suspension(train_job))
        return await self._runtimes.find(train_job, built_on=digest or "", is_built=digest is not None)

    async def _deploy(self, obj: Object, plan: _Plan, *, exists: bool) -> Attempt:
        failure: Exception | None = None
        look_again: float | None = None
        is_resumed = False
        note = plan.note
        try:
            if plan.runtime is not None:
                await self._keep_snapshot(obj, plan.runtime)
            shortfall = await self._deployer.deploy(obj, plan.components)
            if plan.is_whole:
                await self._deployer.prune(obj, plan.components)
        except _TRANSIENT:
            raise
        except (ApiError, ForeignObjectError, PluginError) as error:
            if not exists or isinstance(error, ForeignObjectError):
                return Attempt(_failed(error), error)
            failure, note = error, f"; later changes are not applied: {error}"
        else:
            note += _note(shortfall)
            is_resumed = shortfall.is_resumed
            look_again = RETRY_AFTER if shortfall.rejected else None
        message = f"{JOBS_CREATED}{note}"
        creation = Creation(
            True,
            ConditionReason.JOBS_CREATION_SUCCEEDED,
            message,
            is_whole=not note,
            runtime_digest=plan.runtime_digest,
            is_resumed=is_resumed,
        )
        return Attempt(creation, failure, look_again, is_new=plan.is_missing and creation.is_whole)

    async def _keep_snapshot(self, owner: Object, found: FoundRuntime) -> None:
        """Store what the TrainJob is built on, before anything else exists of it.

        Raises:
            ConflictError: a snapshot exists that the cache does not show yet.
            ForeignObjectError: a ConfigMap of that name belongs to somebody else.
        """
        snapshot = make_snapshot(owner, found.resource, found.object)
        if found.outdated_snapshot is not None:
            options = DeleteOptions(uid=uid_of(found.outdated_snapshot))
            with suppress(NotFoundError):
                await self._client.delete(CONFIG_MAPS, name_of(snapshot), namespace_of(snapshot), options)
        try:
            await self._client.create(CONFIG_MAPS, snapshot)
        except AlreadyExistsError as error:
            existing = await self._client.get(CONFIG_MAPS, name_of(snapshot), namespace_of(snapshot))
            if not is_controlled_by(existing, owner):
                raise ForeignObjectError(CONFIG_MAPS, existing) from error
            raise ConflictError(409, f"the cache does not show ConfigMap {key_of(snapshot)} yet") from error
        log.debug("took runtime snapshot", runtime=f"{found.resource.kind}/{name_of(found.object)}")

    async def _is_outdated(self, obj: Object) -> bool:
        """Whether a TrainJob whose objects are gone has ended or gone as well, unknown to the cache.

        Objects of a finished TrainJob may be deleted at any time and must not be created again.
        """
        try:
            current = await self._client.get(TRAIN_JOBS, name_of(obj), namespace_of(obj))
        except NotFoundError:
            return True
        return uid_of(current) != uid_of(obj) or is_finished(TrainJob.from_object(current))


def _former(found: FoundRuntime) -> str:
    runtime = f"{found.resource.kind}/{name_of(found.object)}"
    return f"; changed too late, delete the TrainJob and submit it again: spec.runtimeRef; the Jobs run {runtime}"


def _check_bounds(obj: Object) -> None:
    """Build nothing of a TrainJob that was stored before the CRD had bounds, if it exceeds them.

    Raises:
        BuildError: names the fields that are too large.
    """
    try:
        TrainJob.check_bounds(obj)
    except InvalidObjectError as error:
        raise BuildError(*error.errors) from error


def _note(shortfall: Shortfall) -> str:
    too_late, declined = ", ".join(shortfall.too_late), "; ".join(shortfall.rejected)
    notes = [f"; changed too late, delete the TrainJob and submit it again: {too_late}"] if too_late else []
    return "".join([*notes, f"; the cluster has rejected a change: {declined}" if declined else ""])


def _failed(error: Exception) -> Creation:
    if isinstance(error, BuildError):
        return Creation(False, ConditionReason.JOBS_BUILD_FAILED, f"Failed to build Jobs: {error}")
    return Creation(False, ConditionReason.JOBS_CREATION_FAILED, f"Failed to create Jobs: {error}")
