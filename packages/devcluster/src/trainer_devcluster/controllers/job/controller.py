"""The Job controller: carries out the plans of `plan_job`."""

from __future__ import annotations

from contextlib import suppress

import structlog

from trainer.kube.cache.store import CONTROLLER_UID, Lister
from trainer.kube.client import Client, DeleteOptions, PatchType
from trainer.kube.clock import Clock
from trainer.kube.controller.controller import Controller
from trainer.kube.controller.reconcile import Result
from trainer.kube.errors import ApiError, NamespaceTerminatingError, NotFoundError
from trainer.kube.events.recorder import EventRecorder
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import Object, ObjectKey, key_of, name_of, namespace_of, uid_of
from trainer.kube.resource import JOBS, PODS
from trainer_devcluster.controllers.job.plan import JobPlan, plan_job
from trainer_devcluster.controllers.job.pods import TRACKING_FINALIZER, build_pod, without_containers
from trainer_devcluster.controllers.job.spec import JobObservation, is_managed_here
from trainer_devcluster.controllers.job.status import status_events
from trainer_devcluster.controllers.options import ControllerOptions

log = structlog.get_logger(__name__)

_MAX_ROUNDS = 20
"""Steps of one reconcile; a Job needs about six, from its last pod's end to Complete."""

_PODS_PER_STEP = 32
"""Pods made before the Job is read again: it may have been deleted, suspended or scaled down meanwhile."""


class JobReconciler:
    """Makes the pods of Jobs and counts how they end."""

    def __init__(
        self,
        client: Client,
        jobs: Lister,
        pods: Lister,
        recorder: EventRecorder,
        *,
        clock: Clock,
        options: ControllerOptions,
    ) -> None:
        self._client = client
        self._jobs = jobs
        self._pods = pods
        self._recorder = recorder
        self._clock = clock
        self._options = options
        self._read: dict[ObjectKey, dict[str, tuple[str, Object]]] = {}

    async def reconcile(self, key: ObjectKey) -> Result | None:
        """Carry out one step after the other until there is none left."""
        try:
            return await self._reconcile(key)
        except NotFoundError as error:
            log.info("stopped as the job is gone", error=str(error))
            return None

    async def _reconcile(self, key: ObjectKey) -> Result | None:
        for _ in range(_MAX_ROUNDS):
            job = self._jobs.get(key)
            if job is None or not is_managed_here(job):
                self._read.pop(key, None)
                return None
            plan = plan_job(JobObservation(job, self._pods_of(key, job), self._clock.now()), self._options)
            if plan.changes_pods:
                await self._change_pods(job, plan)
            elif plan.status is not None:
                await self._store_status(job, plan.status)
            elif plan.release:
                await self._release(plan.release)
            else:
                return Result(requeue_after=plan.requeue_after)
        return Result(requeue_after=0)

    def _pods_of(self, key: ObjectKey, job: Object) -> tuple[Object, ...]:
        """The pods of a Job, each of which is read once for each of its versions."""
        known, found = self._read.get(key, {}), {}
        for pod_key in self._pods.keys_by_index(CONTROLLER_UID, uid_of(job)):
            pod = self._pods.peek(pod_key)
            if pod is None:
                continue
            version, read = known.get(pod.uid, ("", {}))
            same = version == pod.resource_version
            found[pod.uid] = (pod.resource_version, read if same else without_containers(pod))
        self._read[key] = found
        return tuple(read for _, read in found.values())

    async def _change_pods(self, job: Object, plan: JobPlan) -> None:
        for index in plan.create[:_PODS_PER_STEP]:
            await self._create(job, build_pod(job, index))
        await self._release(plan.withdraw)
        for pod in (*plan.delete, *plan.withdraw):
            await self._delete(job, pod)

    async def _create(self, job: Object, pod: Object) -> None:
        try:
            created = await self._client.create(PODS, pod)
        except NamespaceTerminatingError:
            raise
        except ApiError as error:
            message = f"Error creating: {error}"
            self._recorder.record(job, type="Warning", reason="FailedCreate", message=message)
            raise
        log.info("created pod", pod=name_of(created))
        message = f"Created pod: {name_of(created)}"
        self._recorder.record(job, type="Normal", reason="SuccessfulCreate", message=message)

    async def _delete(self, job: Object, pod: Object) -> None:
        options = DeleteOptions(uid=uid_of(pod))
        try:
            await self._client.delete(PODS, name_of(pod), namespace_of(pod), options)
        except NotFoundError:
            return
        except ApiError as error:
            message = f"Error deleting: {error}"
            self._recorder.record(job, type="Warning", reason="FailedDelete", message=message)
            raise
        log.info("deleted pod", pod=name_of(pod))
        message = f"Deleted pod: {name_of(pod)}"
        self._recorder.record(job, type="Normal", reason="SuccessfulDelete", message=message)

    async def _store_status(self, job: Object, status: Object) -> None:
        await self._client.update(JOBS, {**job, "status": status}, subresource="status")
        for event in status_events(job, status):
            self._recorder.record(job, type=event.type, reason=event.reason, message=event.message)

    async def _release(self, pods: tuple[Object, ...]) -> None:
        for pod in pods:
            await release(self._client, pod)


async def release(client: Client, pod: Object) -> None:
    """Take the tracking finalizer off a pod, if it still exists."""
    change = {"metadata": {"uid": uid_of(pod), "$deleteFromPrimitiveList/finalizers": [TRACKING_FINALIZER]}}
    key = key_of(pod)
    with suppress(NotFoundError):
        await client.patch(PODS, key.name, change, key.namespace, patch_type=PatchType.STRATEGIC)


def register(manager: Manager, recorder: EventRecorder, options: ControllerOptions) -> None:
    """Have the manager run the Job controller."""
    jobs, pods = manager.informer(JOBS).lister, manager.informer(PODS).lister
    reconciler = JobReconciler(manager.client, jobs, pods, recorder, clock=manager.clock, options=options)
    controller = Controller("job", manager, reconciler.reconcile, max_concurrent_reconciles=options.workers)
    controller.reconciles(JOBS).owns(PODS)
