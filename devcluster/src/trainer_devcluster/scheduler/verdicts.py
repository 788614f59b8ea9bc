"""The condition PodScheduled of pods that have to wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.clock import timestamp
from trainer.kube.errors import ConflictError, NotFoundError
from trainer.kube.objects import find_condition, name_of, namespace_of, uid_of
from trainer.kube.resource import PODS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from trainer.kube.cache.store import Lister
    from trainer.kube.client import Client
    from trainer.kube.clock import Clock
    from trainer.kube.objects import Object
    from trainer_devcluster.scheduler.candidate import Candidate

_TYPE = "PodScheduled"


class Verdicts:
    """Tells pods why they wait, once for each reason."""

    def __init__(self, client: Client, clock: Clock, pods: Lister) -> None:
        self._client = client
        self._clock = clock
        self._pods = pods

    def is_news(self, candidate: Candidate, reason: str, message: str) -> bool:
        """Whether the pod does not say so already."""
        pod = self._pods.peek(candidate.key)
        return pod is not None and not _says(pod, reason, message)

    async def write(self, candidate: Candidate, reason: str, message: str) -> Object | None:
        """Set the condition to False; returns the pod if it was there. Raises `KubeError`."""
        pod = self._pods.get(candidate.key)
        if pod is None:
            return None
        condition: Object = {"type": _TYPE, "status": "False", "reason": reason, "message": message}
        present = find_condition(pod, _TYPE) or {}
        since = present.get("lastTransitionTime") if present.get("status") == "False" else None
        condition |= {"lastProbeTime": None, "lastTransitionTime": since or timestamp(self._clock.now())}
        others = [entry for entry in (pod.get("status") or {}).get("conditions") or [] if entry["type"] != _TYPE]
        patch = {"metadata": {"uid": uid_of(pod)}, "status": {"conditions": [*others, condition]}}
        try:
            return await self._client.patch(PODS, name_of(pod), patch, namespace_of(pod), subresource="status")
        except (NotFoundError, ConflictError):
            return None


def _says(pod: Mapping[str, Any], reason: str, message: str) -> bool:
    present = find_condition(pod, _TYPE) or {}
    return (present.get("reason"), present.get("message")) == (reason, message)
