"""Gives pods the labels that no template can: their index, their role where a Job has several, and which of them leads.

Pods of an indexed Job have one template, and JobSet has one for all Jobs of a replicated Job, so each pod takes one
request. A reconcile sends a bounded number of them and leaves the rest to the next, so that a job of thousands of pods
holds up no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from trainer.api.jobset_pods import place_of
from trainer.framework.deploying.deployer import FIELD_MANAGER
from trainer.kube.bounded_dict import BoundedDict
from trainer.kube.client import Client
from trainer.kube.errors import ApiError, ForbiddenError, InvalidError, NotFoundError
from trainer.kube.logger import get_logger
from trainer.kube.objects import (
    Object,
    is_being_deleted,
    labels_of,
    name_of,
    namespace_of,
    resource_version_of,
    uid_of,
)
from trainer.kube.resource import PODS
from trainer_v1_jobs.api.kinds import JobKind
from trainer_v1_jobs.controllers.labels import JOB_ROLE, labels_of_replica
from trainer_v1_jobs.controllers.roles import ReplicaLayout

MOST_AT_ONCE: Final = 100
"""Pods that one reconcile labels."""
_REMEMBERED: Final = 4096
"""Limit of the labelled pods that are remembered until the cache has their new labels."""

log = get_logger(__name__)


class PodLabels:
    """The labels of the pods of one kind of job."""

    def __init__(self, client: Client, kind: JobKind) -> None:
        self._client = client
        self._kind = kind
        self._sent: BoundedDict[str, str] = BoundedDict(_REMEMBERED)
        """The resource version that a labelled pod had in the cache, by the uid of the pod."""

    async def complete(self, pods: Iterable[Object], layout: ReplicaLayout, job_name: str) -> bool:
        """Add the labels that pods of a job lack, first to the one that leads, to `MOST_AT_ONCE` of them at most.

        Returns:
            Whether no pod is left.

        Raises:
            KubeError: the API server does not answer, or has refused some, after all others; the work queue retries.
        """
        lacking = [*self._lacking(pods, layout, job_name)]
        lacking.sort(key=lambda each: JOB_ROLE not in each[1])
        refusal: ApiError | None = None
        for pod, missing in lacking[:MOST_AT_ONCE]:
            body = {"metadata": {"uid": uid_of(pod), "labels": missing}}
            try:
                await self._client.patch(PODS, name_of(pod), body, namespace_of(pod), field_manager=FIELD_MANAGER)
            except NotFoundError:
                continue
            except (ForbiddenError, InvalidError) as error:
                refusal = error
                continue
            self._sent[uid_of(pod)] = resource_version_of(pod)
        if lacking:
            log.debug("labelled pods", pods=min(len(lacking), MOST_AT_ONCE), left=max(len(lacking) - MOST_AT_ONCE, 0))
        if refusal is not None:
            raise refusal
        return len(lacking) <= MOST_AT_ONCE

    def _lacking(
        self, pods: Iterable[Object], layout: ReplicaLayout, job_name: str
    ) -> Iterator[tuple[Object, dict[str, str]]]:
        """The pods that lack labels, with those."""
        has_master = layout.has("Master")
        for pod in pods:
            replica = layout.index_of(place_of(pod))
            if replica is None or is_being_deleted(pod) or self._sent.get(uid_of(pod)) == resource_version_of(pod):
                continue
            wanted = labels_of_replica(self._kind, job_name, replica, has_master=has_master)
            present = labels_of(pod)
            missing = {name: value for name, value in wanted.items() if present.get(name) != value}
            if missing:
                yield pod, missing
