"""What the schedulers say of pods that have to wait, in the words of kube-scheduler, coscheduling and Volcano."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trainer.kube.cache.store import Lister
from trainer.kube.client import Client
from trainer.kube.clock import Clock, timestamp
from trainer.kube.errors import ConflictError, NotFoundError
from trainer.kube.objects import Object, find_condition, name_of, namespace_of, set_condition, uid_of
from trainer.kube.resource import PODS
from trainer.workloads import DEFAULT_SCHEDULER
from trainer_devcluster.scheduler.candidate import Candidate, Gang
from trainer_devcluster.scheduler.node_fit import FitFailure, Room

NO_NODES = "no nodes available to schedule pods"

_NOT_HELPFUL = "0/1 nodes are available: 1 Preemption is not helpful for scheduling."
_NO_VICTIMS = "0/1 nodes are available: 1 No preemption victims found for incoming pod."
_NEVER = "not eligible due to preemptionPolicy=Never."
_NO_PREEMPTION = "the dev cluster does not evict pods of lower priority."
_TYPE = "PodScheduled"


def no_fit(candidate: Candidate, refusal: FitFailure, room: Room) -> str:
    """What kube-scheduler says of a pod that the only node does not take."""
    return _failure(f"{refusal}.", candidate, may_pass=refusal.may_pass, has_victims=room.has_victims(candidate))


def unknown_scheduler(candidate: Candidate, known: Sequence[str]) -> str:
    """What is said of a pod that nobody schedules; a real cluster says nothing."""
    return f"no scheduler called {candidate.scheduler} runs here; those that do: {', '.join(known)}"


def no_pod_group(gang: Gang) -> str:
    """What is said of a pod whose PodGroup does not exist (yet)."""
    return f"PodGroup {gang.key} not found"


INFEASIBLE = "pod group is unschedulable"
MIXED = "all pods in a single pod group should have the same priority"
PREEMPTING = "pod group is waiting for preemption to complete"


def gang_infeasible(least: int, scheduled: int) -> str:
    """What kube-scheduler says of a pod that would fit when too few of its gang do."""
    return f"{INFEASIBLE}, {min_count(least, scheduled)}"


def min_count(least: int, scheduled: int) -> str:
    """What kube-scheduler says of a gang of which too few pods fit."""
    return f"minCount ({least}) cannot be satisfied: {scheduled} scheduled, 0 remaining"


def mixed(members: Iterable[Candidate], priority: int) -> str:
    """What kube-scheduler says of a gang whose pods have not all the priority of their PodGroup; "" if they have."""
    others = [member.priority for member in members if member.priority != priority]
    return f"{MIXED} as the pod group's priority, got {others[0]} and {priority}" if others else ""


def too_few_siblings(candidate: Candidate, members: int, least: int) -> str:
    """What coscheduling says while pods of a gang have yet to be made."""
    found = f"current pods number: {members}, minMember of group: {least}"
    return _failure(f"pre-filter pod {candidate.key.name} cannot find enough sibling pods, {found}.", candidate)


def resource_gap(candidate: Candidate, gap: str) -> str:
    """What coscheduling says while the cluster lacks `minResources` of a gang."""
    return _failure(f"resource gap: {gap}.", candidate)


def rejected_for(gang: Gang, sibling: Candidate) -> str:
    """What coscheduling says of a pod that would fit when another of its gang does not."""
    pod = f"Pod {sibling.key.name} is unschedulable even after PostFilter"
    return f"PodGroup {gang.key} gets rejected due to {pod}"


def gang_not_ready(
    pending: int, total: int, least: int, *, misfits: Sequence[tuple[Candidate, FitFailure]] = ()
) -> str:
    """What Volcano says of a gang that it does not schedule.

    Args:
        pending: how many of its pods wait.
        total: how many there are.
        least: how many have to be scheduled together.
        misfits: the pods that do not fit; none if there are too few or the queue has no room.
    """
    count = f"{pending}/{total} tasks in gang unschedulable"
    if total < least:
        return f"{count}: Not enough valid tasks for gang-scheduling, valid: {total}, min: {least}"
    text = f"{count}: pod group is not ready, {pending} Pending, {least} minAvailable"
    if not misfits:
        return text
    kinds = [f"{len(misfits)} Unschedulable"]
    if pending > len(misfits):
        kinds.append(f"{pending - len(misfits)} Schedulable")
    candidate, refusal = misfits[0]
    origin = f"Origin reason is {candidate.key.name}: 0/1 nodes are unavailable: {refusal}."
    return f"{text}; Pending: {', '.join(kinds)}. {origin}"


def _failure(reason: str, candidate: Candidate, *, may_pass: bool = False, has_victims: bool = False) -> str:
    """With what the plugins say that are asked for a way out: that for devices, and that for preemption."""
    if candidate.never_preempts:
        way_out = _NEVER
    elif not may_pass:
        way_out = _NOT_HELPFUL
    else:
        way_out = _NO_PREEMPTION if has_victims else _NO_VICTIMS
    return f"0/1 nodes are available: {reason} no new claims to deallocate, preemption: {way_out}"


def preempted(message: str) -> Object:
    """The condition of a pod or PodGroup that is preempted."""
    return {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": message}


class Verdicts:
    """Reports to pods why they wait, once for each reason, and that they have to go."""

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
        return await self._set(candidate, {"type": _TYPE, "status": "False", "reason": reason, "message": message})

    async def disrupt(self, candidate: Candidate) -> Object | None:
        """Say that the pod is preempted; returns it if it was there. Raises `KubeError`."""
        text = f"{DEFAULT_SCHEDULER}: preempting to accommodate a higher priority pod group"
        return await self._set(candidate, preempted(text))

    async def _set(self, candidate: Candidate, condition: Object) -> Object | None:
        pod = self._pods.get(candidate.key)
        if pod is None:
            return None
        condition = condition | {"lastProbeTime": None}
        before = (pod.get("status") or {}).get("conditions") or []
        conditions = set_condition(before, condition, timestamp(self._clock.now()))
        patch = {"metadata": {"uid": uid_of(pod)}, "status": {"conditions": conditions}}
        try:
            return await self._client.patch(PODS, name_of(pod), patch, namespace_of(pod), subresource="status")
        except (NotFoundError, ConflictError):
            return None


def _says(pod: Mapping[str, Any], reason: str, message: str) -> bool:
    present = find_condition(pod, _TYPE) or {}
    return (present.get("reason"), present.get("message")) == (reason, message)
