"""Taints of nodes and tolerations of pods (Kubernetes documentation, "Taints and Tolerations")."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from datetime import datetime, timedelta

from trainer.kube.clock import parse_timestamp
from trainer.kube.objects import Object, mapping_at, objects_in

NOT_READY = "node.kubernetes.io/not-ready"
"""Taint of a node whose kubelet says that it is not ready."""
UNREACHABLE = "node.kubernetes.io/unreachable"
"""Taint of a node whose kubelet has not been heard of for a while (`node-monitor-grace-period`)."""
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
"""Taint that a person gives to a node that is down for good, so that its pods are deleted by force."""
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
"""Taint of a cordoned node."""
NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "NoExecute"
_BLOCKING = (NO_SCHEDULE, NO_EXECUTE)


def tolerates(tolerations: Iterable[Object], taint: Object) -> bool:
    """Whether one of the tolerations is for this taint."""
    return any(_is_for(toleration, taint) for toleration in tolerations)


def untolerated(
    taints: Iterable[Object], tolerations: Sequence[Object], effects: Container[str] = _BLOCKING
) -> list[Object]:
    """The taints with one of these effects that nothing tolerates; by default those that keep new pods away."""
    return [taint for taint in taints if taint.get("effect") in effects and not tolerates(tolerations, taint)]


def eviction_time(pod: Object, node: Object, otherwise: datetime) -> datetime | None:
    """When the taint manager deletes a pod because of the NoExecute taints of its node; None: it does not.

    Args:
        pod: its tolerations say how long it stays (`tolerationSeconds`).
        node: its taints say since when they are there.
        otherwise: since when a taint is there that does not say so, such as one of `kubectl taint`.
    """
    tolerations = objects_in(mapping_at(pod, "spec").get("tolerations"))
    times = []
    for taint in objects_in(mapping_at(node, "spec").get("taints")):
        if taint.get("effect") != NO_EXECUTE:
            continue
        since = parse_timestamp(taint["timeAdded"]) if taint.get("timeAdded") else otherwise
        toleration = next((each for each in tolerations if _is_for(each, taint)), {"tolerationSeconds": 0})
        if toleration.get("tolerationSeconds") is not None:
            times.append(since + timedelta(seconds=max(toleration["tolerationSeconds"], 0)))
    return min(times, default=None)


def has_taint(node: Object, key: str) -> bool:
    """Whether a node has a taint with this key."""
    return any(taint.get("key") == key for taint in objects_in(mapping_at(node, "spec").get("taints")))


def _is_for(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    key, value = toleration.get("key") or "", taint.get("value") or ""
    if key and key != taint.get("key"):
        return False
    match toleration.get("operator") or "Equal":
        case "Exists":
            return True
        case "Equal":
            return bool(key) and (toleration.get("value") or "") == value
        case _:
            return False
