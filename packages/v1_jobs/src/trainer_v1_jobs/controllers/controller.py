"""Reconciles the jobs of one v1 kind: makes their TrainJobs, and writes their status from those.

A suspended job has no TrainJob: that of a job that is suspended is deleted, and another one is made of what the job
says when it is resumed, since queues change pod templates in between.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from functools import partial
from typing import Final

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.jobset_labels import JOBSET_NAME
from trainer.api.jobset_pods import PODS_BY_JOBSET, age_of, jobset_keys
from trainer.api.trainingruntime import TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.framework.deploying.deployer import FIELD_MANAGER
from trainer.kube.bounded_dict import BoundedDict
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.client import DeleteOptions
from trainer.kube.clock import parse_timestamp, timestamp
from trainer.kube.controller.controller import Controller
from trainer.kube.controller.handlers import MapFunction, own_key, owner_key
from trainer.kube.controller.reconcile import Result
from trainer.kube.controller.sources import Kind
from trainer.kube.errors import ForbiddenError, InvalidError, NotFoundError
from trainer.kube.events.recorder import EventRecorder
from trainer.kube.logger import get_logger
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import (
    Object,
    ObjectKey,
    is_being_deleted,
    key_of,
    labels_of,
    mapping_at,
    metadata_of,
    name_of,
    namespace_of,
    uid_of,
)
from trainer.kube.resource import HORIZONTAL_POD_AUTOSCALERS, PODS
from trainer.kube.selection import Selection
from trainer.v1alpha1.discovery import Version
from trainer_v1_jobs.api.kinds import JobKind
from trainer_v1_jobs.api.policies import TRAINING_OPERATOR, RunPolicy
from trainer_v1_jobs.api.status import JobStatus
from trainer_v1_jobs.controllers.children import Children, children_of, read_leniently
from trainer_v1_jobs.controllers.deployment import Deployment, TakenNameError
from trainer_v1_jobs.controllers.job_reports import JobReports
from trainer_v1_jobs.controllers.labels import REPLICA_INDEX, labels_of_job
from trainer_v1_jobs.controllers.pod_labels import PodLabels
from trainer_v1_jobs.controllers.status import (
    Seen,
    has_ended,
    next_status,
    refused_status,
    status_of,
    unmanaged_status,
)
from trainer_v1_jobs.controllers.training_operator import TrainingOperator

_REMEMBERED: Final = 256
"""Jobs whose conversion is kept; it takes some milliseconds."""
_POD_DELAY: Final = 0.5
"""Seconds in which changes of several pods of a job become one reconcile."""
_AGAIN: Final = 30.0
"""Seconds after which a job that is left to the Training Operator is looked at again."""
_PATIENCE: Final = timedelta(minutes=1)
"""How long the Training Operator has for a first condition before a job is said to be nobody's."""
_NEXT: Final = Result(requeue_after=0)
"""Go on with a job after the others that wait."""

log = get_logger(__name__)


class JobController:
    """Registers a controller for one kind with the manager."""

    def __init__(
        self,
        manager: Manager,
        kind: JobKind,
        deployment: Deployment,
        operator: TrainingOperator,
        *,
        namespace: str | None = None,
        version: Version = "v2alpha1",
    ) -> None:
        everything = Selection(namespace)
        resource = kind.resource
        self._kind = kind
        self._version = version
        self._client = manager.client
        self._clock = manager.clock
        self._deployment = deployment
        self._operator = operator
        self._reports = JobReports(manager.client, EventRecorder(manager.events, FIELD_MANAGER), resource)
        self._labels = PodLabels(manager.client, kind)
        self._converted: BoundedDict[tuple[str, int], Children | InvalidObjectError] = BoundedDict(_REMEMBERED)
        jobs = manager.informer(resource, everything, optional=True)
        self._jobs = jobs.lister
        pods = manager.informer(PODS, Selection(namespace, label_selector=JOBSET_NAME))
        self._pods = pods.lister
        controller = Controller(resource.kind.lower(), manager, self.reconcile, max_concurrent_reconciles=2)
        controller.watches_source(Kind(jobs, own_key))
        owners = owner_key(resource)
        controller.watches(TRAIN_JOBS, owners, selection=everything, predicate=partial(_matters, owners))
        controller.watches(TRAINING_RUNTIMES, owners, selection=everything, predicate=_is_gone)
        controller.watches(HORIZONTAL_POD_AUTOSCALERS, owners, selection=deployment.autoscalers)
        controller.watches(PODS, owners, selection=operator.pods, predicate=_is_gone)
        controller.watches_source(Kind(pods, self._enqueue_job_of, _phase_changed))
        self._controller = controller

    async def reconcile(self, key: ObjectKey) -> Result | None:
        """Create or delete the objects of one job, and write its status."""
        obj = self._jobs.get(key)
        if obj is None or is_being_deleted(obj) or _is_managed_elsewhere(obj):
            return None
        try:
            policy = read_leniently(obj, self._kind).spec.run_policy or RunPolicy()
        except InvalidObjectError as error:
            return await self._refuse(obj, error)
        status = status_of(obj)
        if has_ended(status):
            if self._operator.evidence():
                return Result(requeue_after=_AGAIN)
            cleaned = await self._clean_up(obj, policy, status)
            return cleaned if await self._label_last(obj) else _NEXT
        if (left := await self._leave(obj, status)) is not None:
            return left
        children = self._children(obj)
        if isinstance(children, InvalidObjectError):
            return await self._refuse(obj, children)
        if policy.suspend:
            await self._deployment.remove(obj)
            return await self._report(obj, children, policy)
        again = await self._ensure(obj, children)
        result = await self._report(obj, children, policy)
        return result if again is None else again

    async def _report(self, obj: Object, children: Children, policy: RunPolicy) -> Result | None:
        train_job = None if policy.suspend else self._deployment.train_job_of(obj)
        if train_job is not None and is_being_deleted(train_job):
            train_job = None  # of an earlier run
        if train_job is not None:
            self._reports.tell_trouble(obj, train_job)
        pods = self._pods_of(obj, train_job)
        seen = Seen(children.layout.counts(pods), train_job, is_suspended=bool(policy.suspend))
        status = next_status(obj, self._kind, seen, timestamp(self._clock.now()))
        await self._reports.write(obj, status)
        is_labelled = await self._labels.complete(pods, children.layout, name_of(obj))
        cleaned = await self._clean_up(obj, policy, status) if has_ended(status) else None
        return cleaned if is_labelled else _NEXT

    async def _label_last(self, obj: Object) -> bool:
        """Label what the end of a job has left without labels; returns whether no pod is left."""
        pods = self._pods_of(obj, self._deployment.train_job_of(obj))
        if all(REPLICA_INDEX in labels_of(pod) for pod in pods):
            return True
        children = self._children(obj)
        if isinstance(children, InvalidObjectError):
            return True
        return await self._labels.complete(pods, children.layout, name_of(obj))

    def _pods_of(self, obj: Object, train_job: Object | None) -> list[Object]:
        """The pods of a job, by the labels of its templates; where it has a TrainJob those of earlier ones are none."""
        labels = labels_of_job(self._kind, name_of(obj)).items()
        since = metadata_of(train_job or {}).get("creationTimestamp") or ""
        return [
            pod
            for pod in self._pods.by_index(PODS_BY_JOBSET, str(key_of(obj)))
            if labels <= labels_of(pod).items() and age_of(pod).creation_timestamp >= since
        ]

    async def _ensure(self, obj: Object, children: Children) -> Result | None:
        """Create what is missing; None if all is there. The author of the job sees what the API server refuses."""
        is_new = self._deployment.train_job_of(obj) is None
        try:
            is_complete = await self._deployment.ensure(obj, children)
        except (TakenNameError, ForbiddenError, InvalidError) as error:
            self._reports.warn(obj, "FailedCreate", str(error))
            return Result(error=error)
        if is_complete and is_new:
            self._reports.warn_of_losses(obj, children.losses)
        return None if is_complete else Result(requeue=True)

    async def _refuse(self, obj: Object, error: InvalidObjectError) -> Result | None:
        """Fail a job that cannot become a TrainJob, unless it is the Training Operator's."""
        status = status_of(obj)
        if has_ended(status):
            return None
        if (left := await self._leave(obj, status)) is not None:
            return left
        await self._deployment.remove(obj)
        now = timestamp(self._clock.now())
        await self._reports.write(obj, refused_status(obj, self._kind, f"it cannot become a TrainJob: {error}", now))
        return None

    async def _leave(self, obj: Object, status: JobStatus) -> Result | None:
        """Leave a job alone that is the Training Operator's; None for one that is ours.

        Where nobody works on it, the condition Unmanaged says so.
        """
        now, has_pods = self._clock.now(), self._operator.has_pods_of(obj)
        if evidence := self._operator.evidence():
            created = metadata_of(obj).get("creationTimestamp")
            age = now - parse_timestamp(created) if created else timedelta()
            if has_pods or age < _PATIENCE or any(each.type != "Unmanaged" for each in status.conditions or []):
                return Result(requeue_after=_AGAIN)
            reason = "TrainingOperatorInstalled"
            message = f"it is left to the Training Operator, as there is {evidence}; remove that to have it run here"
        elif has_pods:
            reason = "PodsOfTrainingOperator"
            message = (
                "the Training Operator has made its pods, with which it goes on where it runs; "
                "elsewhere delete the job and submit it again"
            )
        else:
            return None
        await self._reports.write(obj, unmanaged_status(obj, reason, message, timestamp(now)))
        return Result(requeue_after=_AGAIN)

    async def _clean_up(self, obj: Object, policy: RunPolicy, status: JobStatus) -> Result | None:
        """Delete what a finished job needs no more, and at its time the job itself."""
        if policy.clean_pod_policy == "All":
            await self._deployment.remove(obj)
        else:
            await self._deployment.remove_autoscaler(obj)
        if policy.ttl_seconds_after_finished is None or not status.completion_time:
            return None
        since = (self._clock.now() - parse_timestamp(status.completion_time)).total_seconds()
        left = policy.ttl_seconds_after_finished - since
        if left > 0:
            return Result(requeue_after=left)
        try:
            options = DeleteOptions(uid=uid_of(obj))
            await self._client.delete(self._kind.resource, name_of(obj), namespace_of(obj), options)
        except NotFoundError:
            return None
        log.info("deleted finished job", ttl_seconds=policy.ttl_seconds_after_finished)
        return None

    def _children(self, obj: Object) -> Children | InvalidObjectError:
        key = uid_of(obj), int(metadata_of(obj).get("generation") or 0)
        known = self._converted.get(key)
        if known is None or not key[1]:
            try:
                known = children_of(obj, self._kind, self._version)
            except InvalidObjectError as error:
                known = error
            self._converted[key] = known
        return known

    def _enqueue_job_of(self, pod: CachedObject) -> Iterable[ObjectKey]:
        """Map function of pods that joins changes of several ones."""
        for key in jobset_keys(pod):
            if self._jobs.peek(key) is not None:
                self._controller.enqueue(key, after=_POD_DELAY)
        return ()


def _is_managed_elsewhere(obj: Object) -> bool:
    """Whether a job belongs to MultiKueue or another manager, which alone says what is wrong with it."""
    manager = mapping_at(obj, "spec", "runPolicy").get("managedBy")
    return isinstance(manager, str) and manager != TRAINING_OPERATOR


def _matters(owners: MapFunction, old: CachedObject | None, new: CachedObject | None) -> bool:
    """Whether more of the TrainJob of a job has changed than its progress, which is written every few seconds."""
    if old is None or new is None:
        return True
    if not owners(new):
        return bool(owners(old))
    if old.generation != new.generation or old.meta.deletion_timestamp != new.meta.deletion_timestamp:
        return True
    return bool((old.get("status") or {}).get("conditions") != (new.get("status") or {}).get("conditions"))


def _phase_changed(old: CachedObject | None, new: CachedObject | None) -> bool:
    if old is None or new is None:
        return True
    if old.meta.deletion_timestamp != new.meta.deletion_timestamp:
        return True
    return bool((old.get("status") or {}).get("phase") != (new.get("status") or {}).get("phase"))


def _is_gone(_old: CachedObject | None, new: CachedObject | None) -> bool:
    return new is None
