"""The Job controller: carries out the plans of `plan_job`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from trainer.devcluster.controllers.job.plan import plan_job
from trainer.devcluster.controllers.job.pods import TRACKING_FINALIZER
from trainer.devcluster.controllers.job.spec import is_managed_here
from trainer.devcluster.controllers.job.state import JobState
from trainer.devcluster.controllers.job.status import announcements
from trainer.devcluster.controllers.terminating_namespace import is_refused_by_terminating_namespace
from trainer.kube.client import DeleteOptions, PatchType
from trainer.kube.controller import Controller, Result
from trainer.kube.errors import ApiError, ForbiddenError, NotFoundError
from trainer.kube.events import EventRecorder
from trainer.kube.objects import key_of, name_of, namespace_of, uid_of
from trainer.kube.resource import JOBS, PODS

if TYPE_CHECKING:
    from trainer.devcluster.controllers.job.plan import JobPlan
    from trainer.devcluster.controllers.options import ControllerOptions
    from trainer.devcluster.controllers.own_writes import OwnWrites
    from trainer.kube.client import Client
    from trainer.kube.clock import Clock
    from trainer.kube.manager import Manager
    from trainer.kube.objects import Object, ObjectKey

log = structlog.get_logger(__name__)

_MAX_ROUNDS = 20
"""Steps of one reconcile; a Job needs about six, from its last pod's end to Complete."""


class JobReconciler:
    """Makes the pods of Jobs and counts how they end."""

    def __init__(
        self, client: Client, jobs: OwnWrites, pods: OwnWrites, *, clock: Clock, options: ControllerOptions
    ) -> None:
        self._client = client
        self._jobs = jobs
        self._pods = pods
        self._clock = clock
        self._options = options
        self._recorder = EventRecorder(client, "job-controller", clock)

    async def reconcile(self, key: ObjectKey) -> Result | None:
        """Carry out one step after the other until there is none left."""
        try:
            return await self._reconcile(key)
        except NotFoundError as error:
            log.info("stopped as the job is gone", error=str(error))
            return None
        except ForbiddenError as error:
            if not is_refused_by_terminating_namespace(error):
                raise
            return None

    async def _reconcile(self, key: ObjectKey) -> Result | None:
        for _ in range(_MAX_ROUNDS):
            job = self._jobs.get(key)
            if job is None or not is_managed_here(job):
                return None
            plan = plan_job(JobState(job, tuple(self._pods.owned_by(uid_of(job))), self._clock.now()), self._options)
            if plan.changes_pods:
                await self._change_pods(job, plan)
            elif plan.status is not None:
                await self._store_status(job, plan.status)
            elif plan.release:
                await self._release(plan.release)
            else:
                return Result(requeue_after=plan.requeue_after)
        return Result(requeue_after=0)

    async def _change_pods(self, job: Object, plan: JobPlan) -> None:
        for pod in plan.create:
            await self._create(job, pod)
        await self._release(plan.withdraw)
        for pod in (*plan.delete, *plan.withdraw):
            await self._delete(job, pod)

    async def _create(self, job: Object, pod: Object) -> None:
        try:
            created = await self._client.create(PODS, pod)
        except ApiError as error:
            if not is_refused_by_terminating_namespace(error):
                message = f"Error creating: {error}"
                await self._recorder.record(job, type="Warning", reason="FailedCreate", message=message)
            raise
        self._pods.remember(created)
        log.info("created pod", pod=name_of(created))
        message = f"Created pod: {name_of(created)}"
        await self._recorder.record(job, type="Normal", reason="SuccessfulCreate", message=message)

    async def _delete(self, job: Object, pod: Object) -> None:
        options = DeleteOptions(uid=uid_of(pod))
        try:
            await self._client.delete(PODS, name_of(pod), namespace_of(pod), options)
        except NotFoundError:
            self._pods.remember_deletion(pod)
            return
        self._pods.remember_deletion(pod)
        log.info("deleted pod", pod=name_of(pod))
        message = f"Deleted pod: {name_of(pod)}"
        await self._recorder.record(job, type="Normal", reason="SuccessfulDelete", message=message)

    async def _store_status(self, job: Object, status: Object) -> None:
        stored = await self._client.update(JOBS, {**job, "status": status}, subresource="status")
        self._jobs.remember(stored)
        for event in announcements(job.get("status") or {}, status):
            await self._recorder.record(job, type=event.type, reason=event.reason, message=event.message)

    async def _release(self, pods: tuple[Object, ...]) -> None:
        for pod in pods:
            released = await release(self._client, pod)
            if released is None:
                self._pods.remember_deletion(pod)
            else:
                self._pods.remember(released)


async def release(client: Client, pod: Object) -> Object | None:
    """Take the tracking finalizer off a pod; returns the pod, or None when it is gone."""
    change = {"metadata": {"uid": uid_of(pod), "$deleteFromPrimitiveList/finalizers": [TRACKING_FINALIZER]}}
    key = key_of(pod)
    try:
        return await client.patch(PODS, key.name, change, key.namespace, patch_type=PatchType.STRATEGIC)
    except NotFoundError:
        return None


def register(manager: Manager, jobs: OwnWrites, pods: OwnWrites, options: ControllerOptions) -> None:
    """Have the manager run the Job controller."""
    reconciler = JobReconciler(manager.client, jobs, pods, clock=manager.clock, options=options)
    controller = Controller("job", manager, reconciler.reconcile, max_concurrent_reconciles=options.workers)
    controller.reconciles(JOBS).owns(PODS)
