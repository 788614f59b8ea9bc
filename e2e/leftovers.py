"""What must not be left behind, and what must not have happened twice."""

from __future__ import annotations

from collections import Counter
from typing import Any

from e2e.cluster import Cluster
from e2e.waiting import until

CHILDREN = "jobsets,jobs,pods,configmaps,secrets,services,horizontalpodautoscalers"
"""Kinds of all that comes of TrainJobs."""
_OF_EVERY_NAMESPACE = "kube-root-ca.crt"


def children(cluster: Cluster, kinds: str = CHILDREN) -> list[dict[str, Any]]:
    """All objects of the namespace that came of TrainJobs."""
    return [obj for obj in cluster.list(kinds) if obj["metadata"]["name"] != _OF_EVERY_NAMESPACE]


def orphans(cluster: Cluster) -> list[str]:
    """Objects without an owner, or with one that does not exist."""
    found = children(cluster)
    uids = {obj["metadata"]["uid"] for obj in [*found, *cluster.list("trainjobs")]}
    return [
        f"{obj['kind']} {obj['metadata']['name']}"
        for obj in found
        if not any(owner["uid"] in uids for owner in obj["metadata"].get("ownerReferences") or ())
    ]


def identities(cluster: Cluster, kinds: str = "jobsets,jobs,pods") -> dict[str, tuple[str, int]]:
    """Uid and generation of objects: others after a replacement or a change of the spec."""
    return {
        f"{obj['kind']} {obj['metadata']['name']}": (obj["metadata"]["uid"], obj["metadata"].get("generation", 0))
        for obj in cluster.list(kinds)
    }


def repeated_events(cluster: Cluster) -> list[str]:
    """Events about TrainJobs of the namespace that tell the same more than once."""
    reported: Counter[str] = Counter()
    for event in cluster.list("events"):
        about = event["involvedObject"]
        if about["kind"] == "TrainJob":
            reported[f"{about['name']} {event['reason']}: {event['message']}"] += event.get("count") or 1
    return [f"{count} x {text}" for text, count in reported.items() if count > 1]


def delete_everything(cluster: Cluster) -> None:
    """Delete all TrainJobs of the namespace and wait until nothing is left of them."""
    # In one request, and looking at what is left seldom, since there may be many.
    pause = max(0.2, len(cluster.list("trainjobs")) / 100)
    path = f"/apis/trainer.kubeflow.org/v2alpha1/namespaces/{cluster.namespace}/trainjobs"
    cluster.kubectl("delete", f"--raw={path}")
    left: list[str] = []

    def is_empty() -> bool:
        left[:] = [
            f"{obj['kind']} {obj['metadata']['name']}" for obj in [*children(cluster), *cluster.list("trainjobs")]
        ]
        return not left

    try:
        until(is_empty, f"nothing is left of the TrainJobs of {cluster.namespace}", timeout=120, pause=pause)
    except AssertionError as error:
        raise AssertionError(f"{error}: {left[:10]}") from error
