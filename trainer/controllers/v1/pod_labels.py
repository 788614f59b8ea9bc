"""Gives pods the labels that no template can: their role and index, and which of them leads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from trainer.api.jobset_pods import place_of
from trainer.controllers.v1.labels import labels_of_seat
from trainer.framework.deploying.deployer import FIELD_MANAGER
from trainer.kube.errors import NotFoundError
from trainer.kube.objects import is_being_deleted, labels_of, name_of, namespace_of, uid_of
from trainer.kube.resource import PODS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainer.api.kubeflow_v1.kinds import JobKind
    from trainer.controllers.v1.roles import Seating
    from trainer.kube.client import Client
    from trainer.kube.objects import Object

log = structlog.get_logger(__name__)


async def label_pods(client: Client, pods: Iterable[Object], seating: Seating, kind: JobKind, job_name: str) -> None:
    """Add the labels that pods of a job lack.

    Raises:
        KubeError: the API server has refused one; the work queue retries.
    """
    for pod in pods:
        seat = seating.seat_of(place_of(pod))
        if seat is None or is_being_deleted(pod):
            continue
        wanted = labels_of_seat(kind, job_name, seat, has_master=seating.has("Master"))
        present = labels_of(pod)
        missing = {name: value for name, value in wanted.items() if present.get(name) != value}
        if not missing:
            continue
        body = {"metadata": {"uid": uid_of(pod), "labels": missing}}
        try:
            await client.patch(PODS, name_of(pod), body, namespace_of(pod), field_manager=FIELD_MANAGER)
        except NotFoundError:
            continue
        log.debug("labelled pod", pod=name_of(pod), role=seat.role, index=seat.number)
