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
    has_finished,
    is_being_deleted,
    labels_of,
    mapping_at,
    metadata_of,
    name_of,
    objects_in,
)
from trainer.kube.resource import Resource
from trainer.plugins import coscheduling, volcano
from trainer.workloads import DEFAULT_SCHEDULER
from trainer.workloads.scheduling_groups import (
    POD_GROUPS,
    is_of_gang,
    is_refused,
    least_members,
    preempts,
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
    """A gang that is not scheduled as a whole, in what its pods do not say."""
    members = [pod for pod in snapshot.pods if pod_group_of(pod) is not None]
    waiting = [pod for pod in members if not _is_placed(pod)]
    membership = pod_group_of(waiting[0]) if waiting else None
    if membership is None or not (_is_seen(waiting) or _is_late(snapshot, membership, waiting)):
        return  # all have a node, or their scheduler has yet to try
    name = membership.name
    group = _pod_group(snapshot, name)
    about = Subject("PodGroup", name, snapshot.namespace)
    command = command_of("describe", membership.kinds[0].qualified_name, name, namespace=snapshot.namespace)
    if group is None:
        if not snapshot.could_not_read("podgroups"):
            message = f"the pods are members of PodGroup {name}, which does not exist"
            reason = ConditionReason.NO_POD_GROUP
            yield Cause(reason, about, message, remedy_of(reason), command)
    elif not membership.is_of_kubernetes:
        yield from _not_scheduled(members, waiting, group, about, command)
    elif _is_late(snapshot, membership, waiting):
        present = [pod for pod in members if not has_finished(pod)]
        yield from _untried(present, waiting, group, about, command)


def waits_for_gang(snapshot: Snapshot, pod: Object) -> bool:
    """Whether a pod without a place waits for that of the other members, too, or they for it."""
    membership = pod_group_of(pod)
    if membership is None:
        return False
    group = _pod_group(snapshot, membership.name)
    if group is None:
        return True
    members = [each for each in snapshot.pods if pod_group_of(each) == membership]
    waiting = [each for each in members if not _is_placed(each)]
    if membership.is_of_kubernetes and _is_placed_singly(group, members, waiting):
        return False
    return len(members) - len(waiting) < _least(group)


def gang_remedy(message: str) -> str:
    """What helps a gang of whose pod the scheduler says this."""
    if is_refused(message):
        return "name what differs in all pods of the runtime alike: a gang has one scheduler and one priority"
    if preempts(message):
        return "wait: it starts then"
    return remedy_of(GANG_NOT_SCHEDULED)


def said_of_pod_group(snapshot: Snapshot, pod: Object) -> Iterator[str]:
    """What the PodGroup of a pod says beside it, where Kubernetes itself places the gang."""
    membership = pod_group_of(pod)
    group = _pod_group(snapshot, membership.name) if membership is not None else None
    if membership is None or group is None or not membership.is_of_kubernetes:
        return
    condition = scheduled(group)
    if condition.get("status") == "False":
        yield one_line(f"PodGroup {membership.name}: {condition.get('reason')}: {condition.get('message')}")
    if is_being_deleted(group):
        finalizers = ", ".join(map(str, metadata_of(group).get("finalizers") or []))
        kept = f", which waits for its finalizers ({finalizers})" if finalizers else ""
        says = "kube-controller-manager takes them off when no pod is left"
        yield one_line(f"PodGroup {membership.name} is being deleted{kept}: {says}")


def gang_notes(snapshot: Snapshot) -> Iterator[str]:
    """That pods are placed one by one although their JobSet says otherwise."""
    jobs = objects_in(mapping_at(snapshot.jobset or {}, "spec").get("replicatedJobs"))
    templates = {str(job.get("name")): mapping_at(job, "template", "spec", "template") for job in jobs}
    ganged = {name for name, template in templates.items() if scheduling_group(template)}
    pods = [pod for pod in snapshot.pods if labels_of(pod).get(REPLICATED_JOB) in ganged]
    if any(not scheduling_group(pod) for pod in pods):
        yield (
            "its pods are no gang: the API server has dropped their spec.schedulingGroup, since its feature gate "
            "GenericWorkload is off; have it switched on, and start the training again"
        )


def _untried(
    members: Sequence[Object], waiting: Sequence[Object], group: Object, about: Subject, command: str
) -> Iterator[Cause]:
    """Why kube-scheduler does not try a gang: it says nothing of it."""
    least = least_members(group)
    if len(members) < least:
        reason, command = ConditionReason.GANG_INCOMPLETE, command_of("describe", "jobs", namespace=about.namespace)
        message = f"the gang needs {least} pods at the same time, and {len(members)} exist"
        yield Cause(reason, about, message, remedy_of(reason), command)
    elif _is_placed_singly(group, members, waiting):
        scheduler = mapping_at(waiting[0], "spec").get("schedulerName") or DEFAULT_SCHEDULER
        message = f"{scheduler} says nothing of the PodGroup: it places the pods one by one, so that some hold nodes"
        remedy = f"leave schedulerName of the runtime out: {scheduler} may not know PodGroups of scheduling.k8s.io"
        if scheduler == DEFAULT_SCHEDULER:
            gates = "the feature gate GenericWorkload of kube-scheduler (Kubernetes 1.36: GangScheduling, too)"
            remedy = f"have {gates} switched on"
        yield Cause("GangNotHandled", about, message, remedy, command)


def _not_scheduled(
    members: Sequence[Object], waiting: Sequence[Object], group: Object, about: Subject, command: str
) -> Iterator[Cause]:
    least = _least(group) or len(members)
    if len(members) - len(waiting) >= least:
        return  # those beyond the least number of an elastic training wait for themselves
    fits, origin = _fitting(members, waiting)
    text = f"the gang needs {least} pods at the same time: {len(members)} exist, and at most {fits} of them fit now"
    phase = mapping_at(group, "status").get("phase")
    text += f" (phase {phase})" if phase else ""
    text += f"; {origin}" if origin else ""
    remedy = remedy_of(ConditionReason.GANG_INCOMPLETE if len(members) < least else GANG_NOT_SCHEDULED)
    yield Cause(GANG_NOT_SCHEDULED, about, one_line(text), remedy, command)


def _pod_group(snapshot: Snapshot, name: str) -> Object | None:
    return next((each for each in snapshot.of_kind("PodGroup") if name_of(each) == name), None)


def _least(group: Object) -> int:
    """How many pods a PodGroup of any kind needs at the same time; 0 if it does not say."""
    spec = mapping_at(group, "spec")
    return least_members(group) if spec.get("schedulingPolicy") else spec.get("minMember") or 0


def _fitting(members: Sequence[Object], waiting: Sequence[Object]) -> tuple[int, str]:
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


def _is_placed(pod: Object) -> bool:
    return bool(mapping_at(pod, "spec").get("nodeName"))


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
