"""Gangs of Kubernetes' Workload API: of which PodGroup a pod is a member, and what kube-scheduler says of both.

A PodGroup that was scheduled once says so from then on, whatever happens to its pods: those of a training that starts
again tell by their own messages how the gang is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from trainer.kube.objects import find_condition, mapping_at, objects_in
from trainer.kube.resource import Resource
from trainer.workloads.disruption import Taken, taken_away

GROUP = "scheduling.k8s.io"

POD_GROUPS = tuple(Resource(GROUP, version, "podgroups", "PodGroup") for version in ("v1beta1", "v1alpha2"))
"""In the versions of Kubernetes 1.37 and of 1.36; a cluster serves one of them."""

_SCHEDULED = ("PodGroupInitiallyScheduled", "PodGroupScheduled")
"""The condition that says whether the gang has found a place, in the same order."""
_OF_GANG = re.compile(
    r"pod group is |\d{1,6}/\d{1,6} placements are available|minCount \(\d"
    r"|waiting for (?:minCount pods|pods's pod group)|all pods in a single pod group "
)
"""How a message begins that the scheduler gives each pod of a gang, rather than one pod (kube-scheduler 1.36, 1.37)."""
_REFUSES = "all pods in a single pod group "
_PREEMPTS = "pod group is waiting for preemption"
_COUNTS = re.compile(r"minCount \(\d{1,6}\)[^:]{0,40}: (\d{1,6}) scheduled, (\d{1,6}) remaining")


def scheduling_group(pod: Mapping[str, Any]) -> str:
    """The name of the PodGroup of a pod or of a pod template; empty for one of no gang."""
    return str(mapping_at(pod, "spec", "schedulingGroup").get("podGroupName") or "")


def least_members(group: Mapping[str, Any]) -> int:
    """How many pods a PodGroup needs at the same time; 1 of one that is not a gang."""
    least = mapping_at(group, "spec", "schedulingPolicy", "gang").get("minCount")
    return least if isinstance(least, int) and least > 0 else 1


def topology_key(group: Mapping[str, Any]) -> str:
    """The label of nodes whose value all pods of a PodGroup share; empty if they may be anywhere."""
    constraints = objects_in(mapping_at(group, "spec", "schedulingConstraints").get("topology"))
    return next((str(each.get("key") or "") for each in constraints), "")


def scheduled(group: Mapping[str, Any]) -> Mapping[str, Any]:
    """The condition that says whether the gang has found a place; empty before the scheduler has tried."""
    return next((found for each in _SCHEDULED if (found := find_condition(group, each)) is not None), {})


def disruption_of(group: Mapping[str, Any]) -> Taken | None:
    """By whom a PodGroup was disrupted; None if it was not."""
    taken = taken_away({"status": {"conditions": mapping_at(group, "status").get("conditions")}}, None)
    return taken if taken is not None and taken.is_disruption else None


def is_of_gang(message: str) -> bool:
    """Whether the scheduler says it of the gang of a pod, so that nothing is wrong with the pod itself."""
    return _OF_GANG.match(message) is not None


def is_refused(message: str) -> bool:
    """Whether the scheduler says that it does not try a gang, whose pods differ in what they must have in common."""
    return message.startswith(_REFUSES)


def preempts(message: str) -> bool:
    """Whether the scheduler says that a gang waits for pods that it preempts."""
    return message.startswith(_PREEMPTS)


def most_that_fit(message: str) -> int | None:
    """How many pods of a gang fit at most, as a message about it counts them; None if it does not."""
    found = _COUNTS.search(message)
    return int(found[1]) + int(found[2]) if found is not None else None
