"""Writes the status of TrainJobs, one request for each change, and tells users about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from trainer.api.trainjob import TRAIN_JOBS
from trainer.framework.announcements import announcements, changed_conditions
from trainer.framework.deployer import FIELD_MANAGER
from trainer.framework.status import owned_fields
from trainer.kube.errors import NotFoundError
from trainer.kube.objects import name_of, namespace_of, uid_of

if TYPE_CHECKING:
    from trainer.api.trainjob import TrainJob
    from trainer.api.trainjob_status import TrainJobStatus
    from trainer.controllers.metrics.trainjobs import TrainJobMetrics
    from trainer.framework.status import Observation
    from trainer.kube.client import Client
    from trainer.kube.events.recorder import EventRecorder
    from trainer.kube.objects import Object

log = structlog.get_logger(__name__)


class StatusWriter:
    """Applies the part of the status that is ours."""

    def __init__(self, client: Client, recorder: EventRecorder, metrics: TrainJobMetrics) -> None:
        self._client = client
        self._recorder = recorder
        self._metrics = metrics

    async def write(self, train_job: TrainJob, obj: Object, status: TrainJobStatus, seen: Observation) -> None:
        """Apply the status if it differs from that of the TrainJob, and record what that is worth telling.

        Args:
            train_job: the TrainJob as it was.
            obj: the same as JSON.
            status: as it is to be.
            seen: what the status was derived from.
        """
        before, fields = train_job.status, owned_fields(status, seen.plugin_types)
        if before is not None and owned_fields(before, seen.plugin_types) == fields:
            return
        applied = {
            "apiVersion": TRAIN_JOBS.api_version,
            "kind": TRAIN_JOBS.kind,
            # The uid keeps the status of a deleted TrainJob from a new one of the same name.
            "metadata": {"name": name_of(obj), "namespace": namespace_of(obj), "uid": uid_of(obj)},
            "status": fields,
        }
        steps = self._metrics.steps(train_job, status)
        try:
            await self._client.apply(TRAIN_JOBS, applied, field_manager=FIELD_MANAGER, force=True, subresource="status")
        except NotFoundError:
            log.info("dropped status, the TrainJob is gone")
            return
        for count, number in steps:
            count(number)
        changed = changed_conditions(before, status)
        log.info("wrote status", state=status.state, changed=[condition.type for condition in changed])
        for kind, reason, message in announcements(before, status, seen):
            self._recorder.record(obj, type=kind, reason=reason, message=message)
