"""A resource that one node of the cluster offers, as it would GPUs: tests say how many pods fit by the amount of it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from e2e.cluster import Cluster

_KEEPS_PODS_AWAY = {"NoSchedule", "NoExecute"}


@dataclass(frozen=True, slots=True)
class Slots:
    """An extended resource that nothing but the pods of one test asks for (Kubernetes documentation, "Advertise
    Extended Resources for a Node")."""

    cluster: Cluster
    node: str
    resource: str

    def allow(self, count: int | None) -> None:
        """Have the node offer so many; None: none any more."""
        amounts = {self.resource: None if count is None else str(count)}
        patch = json.dumps({"status": {"capacity": amounts, "allocatable": amounts}})
        self.cluster.kubectl("patch", "node", self.node, "--subresource=status", "--type=merge", "-p", patch)

    @property
    def per_node(self) -> dict[str, Any]:
        """`resourcesPerNode` of a TrainJob whose nodes take one each."""
        return {"limits": {self.resource: "1"}}


@contextmanager
def slots_of(cluster: Cluster) -> Iterator[Slots]:
    """Slots that no other test has, none of them offered yet; the node is in the end as it was."""
    node = next(each for each in cluster.list("node") if _takes_pods(each))
    slots = Slots(cluster, node["metadata"]["name"], f"e2e.trainer.kubeflow.org/slots-{uuid.uuid4().hex[:8]}")
    try:
        yield slots
    finally:
        slots.allow(None)


def _takes_pods(node: dict[str, Any]) -> bool:
    spec, conditions = node.get("spec") or {}, node["status"].get("conditions") or []
    is_ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    taints = {taint["effect"] for taint in spec.get("taints") or []}
    return is_ready and not spec.get("unschedulable") and not taints & _KEEPS_PODS_AWAY
