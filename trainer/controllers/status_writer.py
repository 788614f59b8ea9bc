"""Writes the status of TrainJobs, one request for each change, and tells users about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from trainer.api.trainjob import TRAIN_JOBS
from trainer.framework.deploying.deployer import FIELD_MANAGER
from trainer.framework.status.status import owned_fields
from trainer.framework.status.status_events import changed_conditions, status_events
from trainer.kube.errors import KubeError, NotFoundError
from trainer.kube.objects import name_of, namespace_of, uid_of
from trainer.kube.recent import Recent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainer.api.trainjob import TrainJob
    from trainer.api.trainjob_status import TrainJobStatus
    from trainer.controllers.metrics.trainjobs import Step, TrainJobMetrics
    from trainer.framework.status.status import Observation
    from trainer.framework.status.status_events import StatusEvent
    from trainer.kube.client import Client
    from trainer.kube.events.recorder import EventRecorder
    from trainer.kube.objects import Object

log = structlog.get_logger(__name__)


_REMEMBERED = 1024
"""Writes that have failed and may have been carried out; the oldest goes first, and then it is not told of."""


@dataclass(frozen=True, slots=True)
class _News:
    """What is to be told once a status is known to be stored."""

    fields: Object
    """The status as it was sent."""
    state: str | None
    changed: tuple[str, ...]
    steps: Sequence[Step]
    status_events: Sequence[StatusEvent]


class StatusWriter:
    """Applies the part of the status that is ours.

    A write whose answer is lost may have been carried out: it is counted and announced when the cache shows it.
    """

    def __init__(self, client: Client, recorder: EventRecorder, metrics: TrainJobMetrics) -> None:
        self._client = client
        self._recorder = recorder
        self._metrics = metrics
        self._unanswered: Recent[str, _News] = Recent(_REMEMBERED)

    async def write(self, train_job: TrainJob, obj: Object, status: TrainJobStatus, seen: Observation) -> None:
        """Apply the status if it differs from that of the TrainJob, and record what that is worth telling.

        Args:
            train_job: the TrainJob as it was.
            obj: the same as JSON.
            status: as it is to be.
            seen: what the status was derived from.
        """
        before, fields = train_job.status, owned_fields(status, seen.plugin_types)
        present = None if before is None else owned_fields(before, seen.plugin_types)
        unanswered = self._unanswered.pop(uid_of(obj))
        if unanswered is not None and unanswered.fields == present:
            self._tell(obj, unanswered)
        if present == fields:
            return
        applied = {
            "apiVersion": TRAIN_JOBS.api_version,
            "kind": TRAIN_JOBS.kind,
            # The uid keeps the status of a deleted TrainJob from a new one of the same name.
            "metadata": {"name": name_of(obj), "namespace": namespace_of(obj), "uid": uid_of(obj)},
            "status": fields,
        }
        news = _News(
            fields,
            status.state,
            tuple(condition.type for condition in changed_conditions(before, status)),
            self._metrics.steps(train_job, status),
            tuple(status_events(before, status, seen)),
        )
        try:
            await self._client.apply(TRAIN_JOBS, applied, field_manager=FIELD_MANAGER, force=True, subresource="status")
        except NotFoundError:
            log.info("dropped status, the TrainJob is gone")
            return
        except KubeError:
            self._unanswered.put(uid_of(obj), news)
            raise
        self._tell(obj, news)

    def _tell(self, obj: Object, news: _News) -> None:
        for count, number in news.steps:
            count(number)
        log.info("wrote status", state=news.state, changed=news.changed)
        for kind, reason, message in news.status_events:
            self._recorder.record(obj, type=kind, reason=reason, message=message)
