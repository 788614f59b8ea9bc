"""Downward API: what a container may learn about its pod, in environment variables and volumes."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainer.kube.objects import annotations_of, labels_of, name_of, namespace_of, uid_of
from trainer.kube.quantity import parse_quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer.kube.objects import Object

_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


@dataclass(frozen=True, slots=True)
class PodFacts:
    """What the kubelet knows about a pod before its status is written."""

    pod_ip: str
    host_ip: str
    allocatable: Mapping[str, str]
    """Resources of the node; they stand in for limits that are not set."""


def field_value(pod: Object, path: str, facts: PodFacts) -> str:
    """The value of a `fieldRef`; empty for a label or annotation that is not set.

    Raises:
        ValueError: the downward API has no such field.
    """
    spec = pod.get("spec") or {}
    known = {
        "metadata.name": name_of(pod),
        "metadata.namespace": namespace_of(pod),
        "metadata.uid": uid_of(pod),
        "spec.nodeName": spec.get("nodeName") or "",
        "spec.serviceAccountName": spec.get("serviceAccountName") or "default",
        "status.hostIP": facts.host_ip,
        "status.hostIPs": facts.host_ip,
        "status.podIP": facts.pod_ip,
        "status.podIPs": facts.pod_ip,
    }
    if path in known:
        return str(known[path])
    maps = {"labels": labels_of(pod), "annotations": annotations_of(pod)}
    if subscript := _SUBSCRIPT.fullmatch(path):
        return maps[subscript[1]].get(subscript[2], "")
    if path in {"metadata.labels", "metadata.annotations"}:
        entries = sorted(maps[path.removeprefix("metadata.")].items())
        return "\n".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in entries)
    raise ValueError(f"fieldPath {path!r} is not supported by the downward API")


def resource_value(container: Mapping[str, Any], reference: Mapping[str, Any], facts: PodFacts) -> str:
    """The value of a `resourceFieldRef`, in units of its divisor, rounded up.

    Raises:
        ValueError: no such resource, or a wrong quantity.
    """
    kind, _, resource = str(reference.get("resource") or "").partition(".")
    if kind not in {"limits", "requests"} or not resource:
        raise ValueError(f"resource {reference.get('resource')!r} must be limits.NAME or requests.NAME")
    divisor = parse_quantity(reference.get("divisor") or "1") or 1
    resources = container.get("resources") or {}
    amount = (resources.get(kind) or {}).get(resource)
    if amount is None:
        amount = facts.allocatable.get(resource, "0") if kind == "limits" else "0"
    return str(math.ceil(parse_quantity(amount) / divisor))
