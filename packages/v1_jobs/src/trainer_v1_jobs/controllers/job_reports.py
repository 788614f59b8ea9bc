"""Writes the status of v1 jobs, and records events about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from trainer.api.trainjob_status import ConditionType
from trainer.framework.deploying.deployer import FIELD_MANAGER
from trainer.kube.bounded_dict import BoundedDict
from trainer.kube.client import Client
from trainer.kube.errors import NotFoundError
from trainer.kube.events.recorder import EventKind, EventRecorder
from trainer.kube.field_errors import FieldError
from trainer.kube.logger import get_logger
from trainer.kube.objects import Object, find_condition, name_of, namespace_of, uid_of
from trainer.kube.resource import Resource
from trainer_v1_jobs.api.status import JobCondition, JobStatus
from trainer_v1_jobs.controllers.status import status_of

_WARNINGS: Final = ("Failed", "Restarting", "Unmanaged")
_REMEMBERED: Final = 4096
"""Jobs whose last trouble is remembered; that of the oldest is reported again."""

log = get_logger(__name__)


class JobReports:
    """What users see of the jobs of one kind."""

    def __init__(self, client: Client, recorder: EventRecorder, resource: Resource) -> None:
        self._client = client
        self._recorder = recorder
        self._resource = resource
        self._troubles: BoundedDict[str, str] = BoundedDict(_REMEMBERED)

    async def write(self, job: Object, status: JobStatus) -> None:
        """Apply the status if it differs from that of the job, and record an event for each condition that changed."""
        before = status_of(job)
        if status == before:
            return
        applied = {
            "apiVersion": self._resource.api_version,
            "kind": self._resource.kind,
            # The uid keeps the status of a deleted job from a new one of the same name.
            "metadata": {"name": name_of(job), "namespace": namespace_of(job), "uid": uid_of(job)},
            "status": status.to_object(),
        }
        try:
            await self._client.apply(
                self._resource, applied, field_manager=FIELD_MANAGER, force=True, subresource="status"
            )
        except NotFoundError:
            log.info("dropped status, the job is gone")
            return
        changed = list(_changed(before, status))
        log.info("wrote status", changed=[condition.type for condition in changed])
        for condition in changed:
            kind: EventKind = "Warning" if condition.type in _WARNINGS and condition.status == "True" else "Normal"
            reason, message = condition.reason or condition.type, condition.message or ""
            self._recorder.record(job, type=kind, reason=reason, message=message)

    def tell_trouble(self, job: Object, train_job: Object) -> None:
        """Record what keeps the TrainJob from having pods, or its pods from starting, once for each new trouble."""
        found = _trouble(train_job)
        if found is None:
            self._troubles.pop(uid_of(job), None)
            return
        reason, message = found
        self.warn(job, reason, message)

    def warn_of_losses(self, job: Object, losses: Iterable[FieldError]) -> None:
        """Record what has no effect here, as the version of TrainJobs that the cluster serves cannot say it."""
        if message := "; ".join(map(str, losses)):
            self._recorder.record(job, type="Warning", reason="FieldsWithoutEffect", message=message)

    def warn(self, job: Object, reason: str, message: str) -> None:
        """Record a warning, unless it was the last one about this job."""
        if self._troubles.get(uid_of(job)) == message:
            return
        self._troubles[uid_of(job)] = message
        self._recorder.record(job, type="Warning", reason=reason, message=message)


def _changed(before: JobStatus, after: JobStatus) -> Iterator[JobCondition]:
    known = {(each.type, each.status, each.reason) for each in before.conditions or []}
    yield from (each for each in after.conditions or [] if (each.type, each.status, each.reason) not in known)


def _trouble(train_job: Object) -> tuple[str, str] | None:
    """Reason and message of the condition of a TrainJob that says why nothing starts."""
    for type_, status in ((ConditionType.CREATED, "False"), (ConditionType.PENDING, "True")):
        condition = find_condition(train_job, type_)
        if condition is not None and condition.get("status") == status:
            return condition.get("reason") or type_, condition.get("message") or ""
    return None
