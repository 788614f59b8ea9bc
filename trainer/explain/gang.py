"""Gangs, whose pods start together or not at all: how many members there are, fit, and are needed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainer.explain.cause import Cause, Subject, one_line
from trainer.explain.cause import kubectl as command_of
from trainer.explain.snapshot import Snapshot
from trainer.kube.objects import Object, annotations_of, find_condition, labels_of, name_of
from trainer.kube.resource import Resource
from trainer.plugins import coscheduling, volcano

_FOR_OTHERS = re.compile(r"gets rejected due to Pod (\S+)|cannot find enough sibling pods|rejected due to timeout")
"""What coscheduling says of a pod that would fit if others did."""
_VOLCANO_FIT = re.compile(r"\b(\d{1,6}) Schedulable\b")
_VOLCANO_ORIGIN = re.compile(r"Origin reason is (.{1,500}?)\.?$")


def pod_group_of(pod: Object) -> tuple[Resource, str] | None:
    """The kind and name of the PodGroup that a pod is a member of."""
    name = labels_of(pod).get(coscheduling.POD_GROUP_LABEL)
    if name:
        return coscheduling.POD_GROUPS, name
    name = annotations_of(pod).get(volcano.GROUP_NAME_ANNOTATION)
    return (volcano.POD_GROUPS, name) if name else None


def gang_causes(snapshot: Snapshot) -> Iterator[Cause]:
    """A gang that is not scheduled as a whole."""
    members = [pod for pod in snapshot.pods if pod_group_of(pod) is not None]
    waiting = [pod for pod in members if not (pod.get("spec") or {}).get("nodeName")]
    if not any(_scheduled(pod).get("message") for pod in waiting):
        return  # all have a node, or their scheduler has yet to try
    resource, name = pod_group_of(waiting[0]) or (coscheduling.POD_GROUPS, "")
    group = next((each for each in snapshot.of_kind("PodGroup") if name_of(each) == name), None)
    about = Subject("PodGroup", name, snapshot.namespace)
    command = command_of("describe", resource.qualified_name, name, namespace=snapshot.namespace)
    if group is None:
        if not snapshot.could_not_read("podgroups"):
            message = f"the pods are members of PodGroup {name}, which does not exist"
            remedy = "see the events of the TrainJob: the manager makes it, and makes it again"
            yield Cause("NoPodGroup", about, message, remedy, command)
        return
    least = (group.get("spec") or {}).get("minMember") or len(members)
    fits, origin = _fitting(members, waiting)
    text = f"the gang needs {least} pods at the same time: {len(members)} exist, and at most {fits} of them fit now"
    phase = (group.get("status") or {}).get("phase")
    text += f" (phase {phase})" if phase else ""
    text += f"; {origin}" if origin else ""
    remedy = "wait for room for all of them at once, or ask for fewer nodes or less on each"
    if len(members) < least:
        remedy = "see why the other pods are not there: their Job cannot make them, or is not done with it"
    yield Cause("GangNotScheduled", about, one_line(text), remedy, command)


def _fitting(members: list[Object], waiting: list[Object]) -> tuple[int, str]:
    """How many have a place or would have one, and what is said about one that has none."""
    texts = {name_of(pod): str(_scheduled(pod).get("message") or "") for pod in waiting}
    placed = len(members) - len(waiting)
    for text in texts.values():
        fits = _VOLCANO_FIT.search(text)
        origin = _VOLCANO_ORIGIN.search(text)
        if origin is not None:
            return placed + (int(fits[1]) if fits else 0), origin[1]
    misfits = {name: text for name, text in texts.items() if text and not _FOR_OTHERS.search(text)}
    name = min(misfits, default="")
    return len(members) - len(misfits), f"pod {name}: {misfits[name]}" if name else ""


def _scheduled(pod: Object) -> Object:
    return find_condition(pod, "PodScheduled") or {}
