"""The JobSet controller: carries out the plans of `plan_jobset`."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

import structlog

from trainer.kube.cache.store import CONTROLLER_UID, Lister
from trainer.kube.client import Client, DeleteOptions, PatchType, Propagation
from trainer.kube.clock import Clock
from trainer.kube.controller.controller import Controller
from trainer.kube.controller.reconcile import Result
from trainer.kube.errors import AlreadyExistsError, ApiError, NamespaceTerminatingError, NotFoundError
from trainer.kube.events.recorder import EventRecorder
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import Object, ObjectKey, is_controlled_by, key_of, name_of, namespace_of, uid_of
from trainer.kube.resource import JOBS, PERSISTENT_VOLUME_CLAIMS, SERVICES, Resource
from trainer.workloads import JOBSETS
from trainer_devcluster.controllers.jobset.construction import SIZE_FIELDS
from trainer_devcluster.controllers.jobset.names import CONTROLLER_NAME, replicated_job_of
from trainer_devcluster.controllers.jobset.plan import JobSetPlan, plan_jobset
from trainer_devcluster.controllers.options import ControllerOptions
from trainer_devcluster.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates

log = structlog.get_logger(__name__)


class JobSetReconciler:
    """Makes the Jobs of JobSets and draws conclusions from how they fare."""

    def __init__(
        self,
        client: Client,
        jobsets: Lister,
        jobs: Lister,
        services: Lister,
        claims: Lister,
        *,
        recorder: EventRecorder,
        clock: Clock,
        gates: FeatureGates = DEFAULT_FEATURE_GATES,
    ) -> None:
        self._client = client
        self._jobsets = jobsets
        self._jobs = jobs
        self._services = services
        self._claims = claims
        self._recorder = recorder
        self._clock = clock
        self._gates = gates

    async def reconcile(self, key: ObjectKey) -> Result | None:
        """Carry out the plan for the JobSet, if it is there and ours."""
        jobset = self._jobsets.get(key)
        if jobset is None or jobset["spec"].get("managedBy") not in (None, CONTROLLER_NAME):
            return None
        jobs = self._jobs.by_index(CONTROLLER_UID, uid_of(jobset))
        plan = plan_jobset(jobset, jobs, self._clock.now(), self._gates)
        try:
            await self._carry_out(jobset, plan)
        except NotFoundError as error:
            log.info("stopped as the jobset or a job of it is gone", error=str(error))
            return None
        return Result(requeue_after=plan.requeue_after)

    async def _carry_out(self, jobset: Object, plan: JobSetPlan) -> None:
        await self._change_objects(jobset, plan)
        await self._store_status(jobset, plan)
        if plan.expired:
            await self._delete(JOBSETS, jobset)

    async def _change_objects(self, jobset: Object, plan: JobSetPlan) -> None:
        for job in plan.delete:
            await self._delete(JOBS, job)
        if plan.service is not None and self._services.peek(key_of(plan.service)) is None:
            await self._create_other(jobset, SERVICES, plan.service, "HeadlessServiceCreationFailed")
        for claim in plan.claims:
            if self._claims.peek(key_of(claim)) is None:
                await self._create_other(jobset, PERSISTENT_VOLUME_CLAIMS, claim, "PVCCreationFailed")
        for _, jobs in groupby(plan.create, replicated_job_of):
            await self._create_jobs(jobset, jobs)
        for job in plan.resize:
            await self._resize(job)
        for job in plan.update:
            await self._update(job)

    async def _create_jobs(self, jobset: Object, jobs: Iterable[Object]) -> None:
        """Make all Jobs of a replicated job that can be made, and tell of the others together."""
        failures: list[ApiError] = []
        texts: list[str] = []
        for job in jobs:
            try:
                await self._create(jobset, JOBS, job)
            except ApiError as error:
                failures.append(error)
                texts.append(f'job "{name_of(job)}" creation failed with error: {error}')
        if failures:
            self._record_event(jobset, "JobCreationFailed", failures[0], "\n".join(texts))
            raise failures[0]

    async def _create_other(self, jobset: Object, resource: Resource, obj: Object, failure: str) -> None:
        try:
            await self._create(jobset, resource, obj)
        except ApiError as error:
            self._record_event(jobset, failure, error, str(error))
            raise

    async def _create(self, jobset: Object, resource: Resource, obj: Object) -> None:
        try:
            created = await self._client.create(resource, obj)
        except AlreadyExistsError:
            if await self._may_stay(jobset, resource, obj):
                return
            raise
        log.info("created object", kind=resource.kind, created=name_of(created))

    def _record_event(self, jobset: Object, reason: str, error: ApiError, message: str) -> None:
        if not isinstance(error, NamespaceTerminatingError):
            self._recorder.record(jobset, type="Warning", reason=reason, message=message)

    async def _may_stay(self, jobset: Object, resource: Resource, obj: Object) -> bool:
        """Whether what has the name will do.

        Any Service or claim does, and a Job that an earlier reconcile made without an answer.
        """
        if resource != JOBS:
            return True
        try:
            found = await self._client.get(resource, name_of(obj), namespace_of(obj))
        except NotFoundError:
            return False
        return is_controlled_by(found, jobset)

    async def _resize(self, job: Object) -> None:
        # A patch, because the Job controller writes the status of a running Job all the time.
        size = {field: job["spec"][field] for field in SIZE_FIELDS if field in job["spec"]}
        change = {"metadata": {"uid": uid_of(job)}, "spec": size}
        await self._client.patch(JOBS, name_of(job), change, namespace_of(job), patch_type=PatchType.MERGE)
        log.info("resized job", job=name_of(job), **size)

    async def _update(self, job: Object) -> None:
        if not job["spec"]["suspend"] and (job.get("status") or {}).get("startTime"):
            # The template of a Job may change only while it has no start time.
            status = {field: value for field, value in job["status"].items() if field != "startTime"}
            cleared = await self._client.update(JOBS, {**job, "status": status}, subresource="status")
            version = cleared["metadata"]["resourceVersion"]
            job = {**job, "metadata": {**job["metadata"], "resourceVersion": version}}
        await self._client.update(JOBS, job)

    async def _delete(self, resource: Resource, obj: Object) -> None:
        options = DeleteOptions(propagation=Propagation.FOREGROUND, uid=uid_of(obj))
        try:
            await self._client.delete(resource, name_of(obj), namespace_of(obj), options)
        except NotFoundError:
            return
        log.info("deleted object", kind=resource.kind, deleted=name_of(obj))

    async def _store_status(self, jobset: Object, plan: JobSetPlan) -> None:
        if plan.status is None:
            return
        await self._client.update(JOBSETS, {**jobset, "status": plan.status}, subresource="status")
        for event in plan.events:
            self._recorder.record(jobset, type=event.type, reason=event.reason, message=event.message)


def register(manager: Manager, recorder: EventRecorder, options: ControllerOptions) -> None:
    """Have the manager run the JobSet controller."""
    jobsets, jobs, services, claims = (
        manager.informer(resource).lister for resource in (JOBSETS, JOBS, SERVICES, PERSISTENT_VOLUME_CLAIMS)
    )
    gates, clock = options.feature_gates, manager.clock
    reconciler = JobSetReconciler(
        manager.client, jobsets, jobs, services, claims, recorder=recorder, clock=clock, gates=gates
    )
    controller = Controller("jobset", manager, reconciler.reconcile, max_concurrent_reconciles=options.workers)
    controller.reconciles(JOBSETS).owns(JOBS).owns(SERVICES)
