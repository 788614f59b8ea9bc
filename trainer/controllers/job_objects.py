"""Makes sure that the objects of a TrainJob exist: builds and applies them (KEP-2170, "Build Phase")."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.runtime_snapshot import SNAPSHOT_LABEL
from trainer.api.trainjob import TRAIN_JOBS, TrainJob
from trainer.api.trainjob_status import ConditionReason
from trainer.controllers.code_owner import own_code
from trainer.controllers.job import Job
from trainer.framework.deploying.child import ForeignObjectError
from trainer.framework.deploying.deployer import RETRY_AFTER, ApplyResult, Deployer, ObjectId, workload_of
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.component import Component
from trainer.framework.plugin_api.errors import BuildDefectError, BuildError
from trainer.framework.runtimes.runtimes import FoundRuntime, Runtimes, make_snapshot
from trainer.framework.status.status import JOBS_CREATED, Ensured, is_finished
from trainer.kube.bounded_dict import BoundedDict
from trainer.kube.client import Client, DeleteOptions
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
from trainer.kube.objects import Object, ObjectKey, is_controlled_by, key_of, labels_of, name_of, namespace_of, uid_of
from trainer.kube.resource import CONFIG_MAPS, Resource

_UNREPORTED = (
    *NAMESPACE_ERRORS, ConflictError, ServerTimeoutError, ServiceUnavailableError, TooManyRequestsError
)  # fmt: skip
"""Errors that say nothing about the object: left to the work queue without being reported in the status."""

_MOST_MADE = 4096
"""TrainJobs whose status waits and may be written without a build."""

_MOST_BUILT = 4096
"""TrainJobs whose runtimes are remembered while what runs their pods is made anew."""

_ANYTHING = TRAIN_JOBS, ObjectKey("", "")

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Plan:
    components: list[Component]
    runtime: FoundRuntime | None = None
    """The runtime to store as a snapshot; None if there is a snapshot already."""
    runtime_digest: str = ""
    """Digest of the runtime that the objects were built on. Defaults to an unknown one."""
    prunes: bool = False
    """Whether children that are not in the plan are left over from an earlier build, which began with a snapshot."""
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


class _Made(NamedTuple):
    """What was created for a TrainJob whose status waits."""

    train_job: tuple[str, int | None]
    versions: dict[ObjectId, str | None]
    ensured: Ensured


class JobObjects:
    """Makes sure that the objects of TrainJobs exist as these ask for.

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
        self._client = client
        self._pipeline = pipeline
        self._runtimes = runtimes
        self._deployer = deployer
        self._is_busy = is_busy
        self._keeps_digest = keeps_digest
        self._take_over = take_over
        self._made: BoundedDict[ObjectKey, _Made] = BoundedDict(_MOST_MADE)
        self._built: BoundedDict[str, str] = BoundedDict(_MOST_BUILT)
        """Digests of runtimes by the uid of the TrainJob, where its status has no field for it."""
        self._changed: dict[ObjectKey, set[ObjectId]] = {}
        """What has changed while the objects of a TrainJob are built and applied."""

    async def ensure(self, job: Job) -> Ensured:
        """Build and apply the objects of a TrainJob that has not finished.

        The call after one that says that its status may wait builds nothing, unless something has changed meanwhile.

        Raises:
            ConflictError: the cache is stale, or the API server said so; the work queue retries.
            ApiError: it says nothing about the TrainJob, as when the API server is overloaded; the worker knows who
                retries.
        """
        key = key_of(job.stored)
        made = self._made.pop(key, None)
        if made is not None and self._is_current(made, job):
            return made.ensured
        changed = self._changed[key] = set()
        try:
            ensured, created = await self._build_and_apply(job)
        finally:
            del self._changed[key]
        if not created:
            return ensured
        # In a burst, pods start earlier if first statuses are written after the objects of all TrainJobs are created.
        may_wait = job.model.spec.active_deadline_seconds is None and self._is_busy()
        if may_wait and changed <= created:
            self._made[key] = _Made(_version(job), self._deployer.versions(created), ensured)
        return replace(ensured, may_wait=may_wait)

    async def _build_and_apply(self, job: Job) -> tuple[Ensured, set[ObjectId]]:
        """Also returns the objects if what runs pods was created just now, and nothing is left to do."""
        was_created = job.is_created
        try:
            built_on = self._built_on(job)
            # Before the first status of ours: another manager has made it, or this one was stopped.
            was_created = was_created or (built_on is not None and not _recorded(job))
            if built_on is None:
                await own_code(self._client, job.stored)
            plan = await self._plan(job, built_on, was_created=was_created)
        except BuildError as error:
            if was_created:
                await self._check_going(job)
            return _failed(error, is_retried=isinstance(error, BuildDefectError)), set()
        if was_created and plan.is_missing:
            await self._check_going(job)
        ensured, is_held = await self._apply(job, plan, was_created=was_created)
        if plan.has_workload or is_held or not (ensured.exist and ensured.is_whole):
            return ensured, set()
        read = (each for each in plan.components if each.generated is None)
        return ensured, {(each.resource, each.key) for each in read}

    def found(self, job: Job) -> Ensured | None:
        """What exists of a TrainJob whose status does not show it; None if that is not known without a build.

        What runs pods is created last.
        """
        digest = self._deployer.built_on(job.stored, self._pipeline.suspension(job.model))
        return self._existing(digest) if digest else None

    def look_again(self, train_job: ObjectKey, resource: Resource, changed: ObjectKey) -> None:
        """Build at the next call in any case, after a change of an object that is none of the TrainJob's own."""
        if train_job in self._changed:
            self._changed[train_job].add((resource, changed))
        made = self._made.get(train_job)
        if made is not None and (resource, changed) not in made.versions:
            self._made.pop(train_job, None)

    def look_again_at_all(self) -> None:
        """The same for all TrainJobs."""
        self._made.clear()
        for changed in self._changed.values():
            changed.add(_ANYTHING)

    def _is_current(self, made: _Made, job: Job) -> bool:
        """Whether TrainJob and objects are as they were."""
        return made.train_job == _version(job) and made.versions == self._deployer.versions(made.versions)

    async def _plan(self, job: Job, built_on: str | None, *, was_created: bool) -> _Plan:
        try:
            self._check_bounds(job.stored)
            if built_on == "" and self._take_over is not None:
                await self._take_over(job.model, job.stored, self._runtimes)
            found = await self._runtimes.find(job.model, built_on=built_on or "", is_built=built_on is not None)
            components = [
                replace(each, runtime_digest=found.digest) if each.runs_pods else each
                for each in self._pipeline.build(job.model, found.runtime)
            ]
            missing = self._deployer.missing(components)
            workload = workload_of(components)
            return _Plan(
                components,
                None if found.is_snapshot else found,
                runtime_digest=found.digest,
                prunes=built_on is not None or found.is_snapshot or found.outdated_snapshot is not None,
                is_missing=bool(missing),
                has_workload=not any(each is component for each in missing for component in workload),
                note=_former(found) if found.is_former else "",
            )
        except BuildError as error:
            digest = built_on or ""
            existing = self._suspension(job, digest) if was_created else []
            if not existing:
                raise
            # The training goes on: only suspend is applied to its objects.
            note = f"; later changes, except of suspend, are not applied: {error}"
            return _Plan(existing, runtime_digest=digest, note=note)

    def _check_bounds(self, obj: Object) -> None:
        """Refuse a TrainJob that exceeds the bounds of the CRD because it was stored under an older one."""
        try:
            TrainJob.check_bounds(obj)
        except InvalidObjectError as error:
            if errors := [each for each in error.errors if self._pipeline.profile.has_bound(each)]:
                raise BuildError(*errors) from error

    def _built_on(self, job: Job) -> str | None:
        """The digest of the runtime that the TrainJob was built on, by its status or by the objects that run pods.

        Empty if it is not recorded, as where another manager has built it; None before it is built. What runs pods may
        be gone because it is made anew.
        """
        digest = _recorded(job) or self._deployer.built_on(job.stored, self._pipeline.suspension(job.model))
        if digest and not self._keeps_digest:
            self._built[job.uid] = digest
        return self._built.get(job.uid) if digest is None else digest

    async def _apply(self, job: Job, plan: _Plan, *, was_created: bool) -> tuple[Ensured, bool]:
        """Also returns whether no pods start for now."""
        exists = was_created and plan.has_workload
        try:
            if plan.runtime is not None:
                await self._keep_snapshot(job.stored, plan.runtime)
            result = await self._deployer.deploy(job.stored, plan.components)
            if plan.prunes:
                await self._deployer.prune(job.stored, plan.components, is_new=not plan.has_workload)
        except _UNREPORTED:
            raise
        except (ApiError, ForeignObjectError, BuildDefectError) as error:
            await self._suspend(job, plan.runtime_digest)
            if not exists or isinstance(error, ForeignObjectError):
                return _failed(error, is_retried=True), False
            note = f"; later changes are not applied: {error}"
            return self._existing(plan.runtime_digest, note, error=error), False
        if result.is_held and not was_created:
            message = f"No Jobs yet: {'; '.join(result.replaced)}"
            return Ensured(False, ConditionReason.JOBS_CREATION_FAILED, message), True
        ensured = self._existing(
            plan.runtime_digest,
            f"{plan.note}{_note(result)}",
            announced="".join(f"; {each}" for each in result.replaced),
            is_resumed=result.is_resumed,
            retry_after=RETRY_AFTER if result.rejected else None,
        )
        return ensured, result.is_held

    async def _suspend(self, job: Job, digest: str) -> None:
        """Suspend what runs the pods although another object is not accepted: the pods hold what others wait for."""
        if job.model.spec.suspend:
            with suppress(ApiError, ForeignObjectError, BuildDefectError):  # it may be what was not accepted
                await self._deployer.deploy(job.stored, self._suspension(job, digest))

    def _suspension(self, job: Job, digest: str) -> list[Component]:
        return [replace(each, runtime_digest=digest) for each in self._pipeline.suspension(job.model)]

    def _existing(
        self,
        digest: str,
        note: str = "",
        *,
        announced: str = "",
        is_resumed: bool = False,
        error: Exception | None = None,
        retry_after: float | None = None,
    ) -> Ensured:
        return Ensured(
            True,
            ConditionReason.JOBS_CREATION_SUCCEEDED,
            f"{JOBS_CREATED}{note}{announced}",
            is_whole=not note,
            runtime_digest=digest if self._keeps_digest else "",
            is_resumed=is_resumed,
            error=error,
            retry_after=retry_after,
        )

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

    async def _check_going(self, job: Job) -> None:
        """Refuse a TrainJob that has finished or was deleted, which the cache does not show yet.

        Objects of a finished TrainJob may be deleted at any time and must not be created again.
        """
        key = key_of(job.stored)
        with suppress(NotFoundError):
            current = await self._client.get(TRAIN_JOBS, key.name, key.namespace)
            if uid_of(current) == job.uid and not is_finished(TrainJob.from_object(current)):
                return
        raise ConflictError(409, f"the cache does not show the end of TrainJob {key} yet")


def _version(job: Job) -> tuple[str, int | None]:
    return job.uid, job.model.metadata.generation


def _recorded(job: Job) -> str | None:
    return None if job.model.status is None else job.model.status.runtime_digest


def _former(found: FoundRuntime) -> str:
    runtime = f"{found.resource.kind}/{name_of(found.object)}"
    return f"; changed too late, delete the TrainJob and submit it again: spec.runtimeRef; the Jobs run {runtime}"


def _note(result: ApplyResult) -> str:
    immutable, rejected = ", ".join(result.immutable_fields), "; ".join(result.rejected)
    notes = [f"; changed too late, delete the TrainJob and submit it again: {immutable}"] if immutable else []
    return "".join([*notes, f"; the cluster has rejected a change: {rejected}" if rejected else ""])


def _failed(error: Exception, *, is_retried: bool) -> Ensured:
    retried = error if is_retried else None
    if isinstance(error, BuildError):
        return Ensured(False, ConditionReason.JOBS_BUILD_FAILED, f"Failed to build Jobs: {error}", error=retried)
    return Ensured(False, ConditionReason.JOBS_CREATION_FAILED, f"Failed to create Jobs: {error}", error=retried)
