"""Gangs, whose pods start together or not at all: how many members there are, fit, and are needed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from trainer.api.jobset_labels import REPLICATED_JOB
from trainer.api.trainjob_status import ConditionReason
from trainer.explain.cause import Cause, Subject, one_line
from trainer.explain.cause import kubectl as command_of
from trainer.explain.remedies import remedy_of
from trainer.explain.snapshot import Snapshot
from trainer.kube.objects import (
    Object,
    annotations_of,
    find_condition,
    is_being_deleted,
    labels_of,
    mapping_at,
    metadata_of,
    name_of,
    objects_in,
)
from trainer.kube.resource import Resource
from trainer.plugins import coscheduling, volcano
from trainer.workloads.scheduling_groups import (
    POD_GROUPS,
    is_of_gang,
    least_members,
    most_that_fit,
    scheduled,
    scheduling_group,
)

GANG_NOT_SCHEDULED = "GangNotScheduled"

_FOR_OTHERS = re.compile(r"gets rejected due to Pod (\S+)|cannot find enough sibling pods|rejected due to timeout")
"""What coscheduling says of a pod that would fit if others did."""
_VOLCANO_FIT = re.compile(r"\b(\d{1,6}) Schedulable\b")
_VOLCANO_ORIGIN = re.compile(r"Origin reason is (.{1,500}?)\.?$")
_GRACE_SECONDS = 10
"""Seconds within which all pods of a gang are made, and kube-scheduler has said something of it."""
_GATES = "the feature gate GenericWorkload of kube-scheduler (Kubernetes 1.36: GangScheduling, too)"


class Membership(NamedTuple):
    """Of which PodGroup a pod is a member."""

    kinds: tuple[Resource, ...]
    """The kind of the PodGroup, in each version that a cluster may serve."""
    name: str

    @property
    def is_of_kubernetes(self) -> bool:
        """Whether Kubernetes itself places the gang."""
        return self.kinds == POD_GROUPS


def pod_group_of(pod: Object) -> Membership | None:
    """The PodGroup of a pod, or of the pods of a template; None for one that is placed alone."""
    named = (
        (POD_GROUPS, scheduling_group(pod)),
        ((coscheduling.POD_GROUPS,), labels_of(pod).get(coscheduling.POD_GROUP_LABEL)),
        ((volcano.POD_GROUPS,), annotations_of(pod).get(volcano.GROUP_NAME_ANNOTATION)),
    )
    return next((Membership(kinds, name) for kinds, name in named if name), None)


def gang_causes(snapshot: Snapshot) -> Iterator[Cause]:
    """A gang that is not scheduled as a whole."""
    members = [pod for pod in snapshot.pods if pod_group_of(pod) is not None]
    waiting = [pod for pod in members if not (pod.get("spec") or {}).get("nodeName")]
    membership = pod_group_of(waiting[0]) if waiting else None
    if membership is None or not (_is_seen(waiting) or _is_late(snapshot, membership, waiting)):
        return  # all have a node, or their scheduler has yet to try
    name = membership.name
    group = next((each for each in snapshot.of_kind("PodGroup") if name_of(each) == name), None)
    about = Subject("PodGroup", name, snapshot.namespace)
    command = command_of("describe", membership.kinds[0].qualified_name, name, namespace=snapshot.namespace)
    if group is None:
        if not snapshot.could_not_read("podgroups"):
            message = f"the pods are members of PodGroup {name}, which does not exist"
            reason = ConditionReason.NO_POD_GROUP
            yield Cause(reason, about, message, remedy_of(reason), command)
        return
    if _is_late(snapshot, membership, waiting) and _is_placed_singly(group, members, waiting):
        message = "kube-scheduler says nothing of the PodGroup: it places the pods one by one, so that some hold nodes"
        remedy = f"have {_GATES} switched on, or name a scheduler that knows PodGroups of scheduling.k8s.io"
        yield Cause("GangNotHandled", about, message, f"{remedy} in schedulerName of the runtime", command)
        return
    if membership.is_of_kubernetes and not _is_seen(waiting) and len(members) >= least_members(group):
        return  # nobody has tried, which is no matter of the gang
    yield from _not_scheduled(members, waiting, group, about, command)


def gang_notes(snapshot: Snapshot) -> Iterator[str]:
    """That pods are placed one by one although their JobSet says otherwise."""
    jobs = objects_in(mapping_at(snapshot.jobset or {}, "spec").get("replicatedJobs"))
    templates = {str(job.get("name")): mapping_at(job, "template", "spec", "template") for job in jobs}
    ganged = {name for name, template in templates.items() if scheduling_group(template)}
    pods = [pod for pod in snapshot.pods if labels_of(pod).get(REPLICATED_JOB) in ganged]
    if any(not scheduling_group(pod) for pod in pods):
        yield (
            "its pods are no gang: the API server has dropped their spec.schedulingGroup, since its feature gate "
            "GenericWorkload is off"
        )


def _not_scheduled(
    members: Sequence[Object], waiting: Sequence[Object], group: Object, about: Subject, command: str
) -> Iterator[Cause]:
    own = mapping_at(group, "spec").get("schedulingPolicy")
    least = least_members(group) if own else mapping_at(group, "spec").get("minMember") or len(members)
    if len(members) - len(waiting) >= least:
        return  # those beyond the least number of an elastic training wait for themselves
    fits, origin = _fitting(members, waiting, group)
    text = f"the gang needs {least} pods at the same time: {len(members)} exist, and at most {fits} of them fit now"
    phase = mapping_at(group, "status").get("phase")
    text += f" (phase {phase})" if phase else ""
    text += f"; {origin}" if origin else ""
    remedy = remedy_of(ConditionReason.GANG_INCOMPLETE if len(members) < least else GANG_NOT_SCHEDULED)
    details = tuple(map(one_line, _of_group(group)))
    yield Cause(GANG_NOT_SCHEDULED, about, one_line(text), remedy, command, details=details)


def _of_group(group: Object) -> Iterator[str]:
    """What else a PodGroup says."""
    condition = scheduled(group)
    if condition.get("status") == "False":
        yield f"the PodGroup: {condition.get('reason')}: {condition.get('message')}"
    if is_being_deleted(group):
        finalizers = ", ".join(map(str, metadata_of(group).get("finalizers") or []))
        kept = f", which waits for its finalizers ({finalizers})" if finalizers else ""
        yield f"the PodGroup is being deleted{kept}: kube-controller-manager takes them off when no pod is left"


def _fitting(members: Sequence[Object], waiting: Sequence[Object], group: Object) -> tuple[int, str]:
    """How many have a place or would have one, and what is said about one that has none."""
    texts = {name_of(pod): str(_scheduled(pod).get("message") or "") for pod in waiting}
    placed = len(members) - len(waiting)
    for text in texts.values():
        fits = _VOLCANO_FIT.search(text)
        origin = _VOLCANO_ORIGIN.search(text)
        if origin is not None:
            return placed + (int(fits[1]) if fits else 0), origin[1]
    misfits = {name: text for name, text in texts.items() if text and not _is_for_others(text)}
    name = min(misfits, default="")
    condition = scheduled(group)
    said = [*texts.values(), *([str(condition.get("message"))] if condition.get("status") == "False" else [])]
    counted = [count for text in said if (count := most_that_fit(text)) is not None]
    return min([len(members) - len(misfits), *counted]), f"pod {name}: {misfits[name]}" if name else ""


def _is_for_others(text: str) -> bool:
    return is_of_gang(text) or _FOR_OTHERS.search(text) is not None


def _is_seen(waiting: Sequence[Object]) -> bool:
    """Whether their scheduler says something of them."""
    return any(_scheduled(pod).get("message") for pod in waiting)


def _is_late(snapshot: Snapshot, membership: Membership, waiting: Sequence[Object]) -> bool:
    """Whether pods wait in silence, as kube-scheduler leaves those whose PodGroup or other members are missing."""
    return membership.is_of_kubernetes and max(map(snapshot.age, waiting)) >= _GRACE_SECONDS


def _is_placed_singly(group: Object, members: Sequence[Object], waiting: Sequence[Object]) -> bool:
    """Whether some pods of a gang have nodes or are judged alone, and its PodGroup has no word of a scheduler."""
    texts = [str(_scheduled(pod).get("message") or "") for pod in waiting]
    return not scheduled(group) and len(waiting) < len(members) and not any(map(is_of_gang, texts))


def _scheduled(pod: Object) -> Object:
    return find_condition(pod, "PodScheduled") or {}
