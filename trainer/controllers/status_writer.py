"""Writes the status of TrainJobs: applies each change, then counts it and records events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainer.api.trainjob import TRAIN_JOBS
from trainer.api.trainjob_status import ConditionReason, TrainJobStatus
from trainer.controllers.job import Job
from trainer.controllers.metrics.trainjobs import Step, TrainJobMetrics
from trainer.framework.deploying.deployer import FIELD_MANAGER
from trainer.framework.status.status import Observation, owned_fields
from trainer.framework.status.status_events import StatusEvent, changed_conditions, status_events
from trainer.kube.bounded_dict import BoundedDict
from trainer.kube.client import Client
from trainer.kube.errors import KubeError, NotFoundError
from trainer.kube.events.recorder import EventRecorder
from trainer.kube.logger import get_logger
from trainer.kube.objects import Object, name_of, namespace_of

log = get_logger(__name__)


_MOST_UNCONFIRMED = 1024
"""Failed writes that may have been carried out; the oldest is dropped first, without events."""


@dataclass(frozen=True, slots=True)
class _Change:
    """A change of a status, to be counted and recorded once it is stored."""

    fields: Object
    """The status as it was sent."""
    state: str | None
    changed: tuple[str, ...]
    steps: Sequence[Step]
    events: Sequence[StatusEvent]


class StatusWriter:
    """Applies the fields of the status that this controller owns.

    A write whose response is lost may have been carried out: it is counted and recorded when the cache shows it.
    """

    def __init__(self, client: Client, recorder: EventRecorder, metrics: TrainJobMetrics) -> None:
        self._client = client
        self._recorder = recorder
        self._metrics = metrics
        self._unconfirmed: BoundedDict[str, _Change] = BoundedDict(_MOST_UNCONFIRMED)

    async def write(self, job: Job, status: TrainJobStatus, seen: Observation) -> None:
        """Apply the status if it differs from that of the TrainJob, and record the events of the change."""
        obj, before, fields = job.stored, job.model.status, owned_fields(status, seen.plugin_types)
        present = None if before is None else owned_fields(before, seen.plugin_types)
        unconfirmed = self._unconfirmed.pop(job.uid, None)
        if unconfirmed is not None and unconfirmed.fields == present:
            self._record(obj, unconfirmed)
        if present == fields:
            return
        applied = {
            "apiVersion": TRAIN_JOBS.api_version,
            "kind": TRAIN_JOBS.kind,
            # The uid keeps the status of a deleted TrainJob from a new one of the same name.
            "metadata": {"name": name_of(obj), "namespace": namespace_of(obj), "uid": job.uid},
            "status": fields,
        }
        change = _Change(
            fields,
            status.state,
            tuple(condition.type for condition in changed_conditions(before, status)),
            self._metrics.steps(job.model, status),
            tuple(status_events(before, status, seen)),
        )
        try:
            await self._client.apply(TRAIN_JOBS, applied, field_manager=FIELD_MANAGER, force=True, subresource="status")
        except NotFoundError:
            log.info("dropped status, the TrainJob is gone")
            return
        except KubeError:
            self._unconfirmed[job.uid] = change
            raise
        self._record(obj, change)

    def refuse(self, obj: Object, message: str) -> None:
        """Record why a TrainJob cannot be read; without that there is no status to write."""
        self._recorder.record(obj, type="Warning", reason=ConditionReason.JOBS_BUILD_FAILED, message=message)

    def _record(self, obj: Object, change: _Change) -> None:
        for count, number in change.steps:
            count(number)
        log.info("wrote status", state=change.state, changed=change.changed)
        for kind, reason, message in change.events:
            self._recorder.record(obj, type=kind, reason=reason, message=message)
