"""What the schedulers say of pods that have to wait, in the words of kube-scheduler 1.36, coscheduling and Volcano."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainer_devcluster.scheduler.candidate import Candidate
    from trainer_devcluster.scheduler.gangs import Gang
    from trainer_devcluster.scheduler.node_fit import Refusal, Room

NO_NODES = "no nodes available to schedule pods"

_NOT_HELPFUL = "0/1 nodes are available: 1 Preemption is not helpful for scheduling."
_NO_VICTIMS = "0/1 nodes are available: 1 No preemption victims found for incoming pod."
_NEVER = "not eligible due to preemptionPolicy=Never."
_NO_PREEMPTION = "the dev cluster does not evict pods of lower priority."


def no_fit(candidate: Candidate, refusal: Refusal, room: Room) -> str:
    """What kube-scheduler says of a pod that the only node does not take."""
    return _failure(f"{refusal}.", candidate, may_pass=refusal.may_pass, has_victims=room.has_victims(candidate))


def unknown_scheduler(candidate: Candidate, known: Sequence[str]) -> str:
    """What is said of a pod that nobody schedules; a real cluster says nothing."""
    return f"no scheduler called {candidate.scheduler} runs here; those that do: {', '.join(known)}"


def no_pod_group(gang: Gang) -> str:
    """What is said of a pod whose PodGroup does not exist (yet)."""
    return f"PodGroup {gang.key} not found"


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


def timed_out(seconds: float) -> str:
    """What coscheduling says when the rest of a gang has not become schedulable in time."""
    return f"rejected due to timeout after waiting {seconds:g}s at plugin Coscheduling"


def gang_not_ready(pending: int, total: int, least: int, *, misfits: Sequence[tuple[Candidate, Refusal]] = ()) -> str:
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
