"""The status of PodGroups, as the controller of scheduler-plugins and Volcano write it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING
from uuid import uuid4

from trainer.kube.objects import find_condition, owner_references_of
from trainer_devcluster.scheduler.candidate import is_waiting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainer.kube.objects import Object

_READY = "tasks in gang are ready to be scheduled"
_ENDED = ("Finished", "Failed")


def coscheduling_status(group: Object, pods: Sequence[Object], now: str) -> Object:
    """Status of a PodGroup of scheduler-plugins.

    Args:
        group: the PodGroup.
        pods: all that name it.
        now: for `scheduleStartTime`.
    """
    status: Object = dict(group.get("status") or {})
    phase, least = status.get("phase") or "", _least(group)
    if phase in _ENDED:
        return status
    if not phase:
        return status | {"phase": "Pending"}
    if phase == "Pending":
        if len(pods) < least:
            return status
        occupied = {"occupiedBy": owner} if (owner := _owner(pods)) else {}
        return status | {"phase": "Scheduling", "scheduleStartTime": status.get("scheduleStartTime") or now} | occupied
    counts = _phases(pods)
    running, succeeded, failed = (counts[name] for name in ("Running", "Succeeded", "Failed"))
    status |= {"running": running, "succeeded": succeeded, "failed": failed}
    if len(pods) < least:
        return status | {"phase": "Pending"}
    phase = "Running" if succeeded + running >= least else "Scheduling"
    if failed and failed + running + succeeded >= least:
        phase = "Failed"
    if succeeded >= least:
        phase = "Finished"
    return status | {"phase": phase}


def volcano_status(group: Object, pods: Sequence[Object], now: str) -> Object:
    """Status of a PodGroup of Volcano; arguments as for `coscheduling_status`."""
    counts, least = _phases(pods), _least(group)
    allocated = [pod for pod in pods if pod["spec"].get("nodeName") and _phase(pod) != "Failed"]
    status: Object = {
        key: value for key, value in (group.get("status") or {}).items() if key in ("conditions", "phase")
    }
    if counts["Succeeded"] + counts["Failed"] == len(pods) and len(pods) >= least:
        status["phase"] = "Completed"
    elif len(allocated) >= least:
        status["phase"] = "Running"
    elif counts["Running"]:
        status["phase"] = "Unknown"
    else:
        status["phase"] = "Inqueue" if len(pods) >= least else "Pending"
    for field in ("running", "succeeded", "failed"):
        if counts[field.capitalize()]:
            status[field] = counts[field.capitalize()]
    condition = _volcano_condition(pods, enough=len(allocated) >= least)
    if condition is not None:
        _set_condition(status, group, condition, now)
    return status


def _volcano_condition(pods: Sequence[Object], *, enough: bool) -> Object | None:
    if enough:
        return {"type": "Scheduled", "reason": _READY}
    for pod in pods:
        verdict = find_condition(pod, "PodScheduled") if is_waiting(pod) else None
        if verdict is not None and verdict.get("reason") == "Unschedulable":
            return {"type": "Unschedulable", "reason": "NotEnoughResources", "message": verdict.get("message") or ""}
    return None


def _set_condition(status: Object, group: Object, condition: Object, now: str) -> None:
    present = find_condition(group, condition["type"]) or {}
    if all(present.get(name) == value for name, value in condition.items()):
        return
    others = [entry for entry in status.get("conditions") or [] if entry["type"] != condition["type"]]
    entry = condition | {"status": "True", "lastTransitionTime": now, "transitionID": str(uuid4())}
    status["conditions"] = [*others, entry]


def _least(group: Object) -> int:
    return max(1, int((group.get("spec") or {}).get("minMember") or 1))


def _phase(pod: Object) -> str:
    return str((pod.get("status") or {}).get("phase") or "")


def _phases(pods: Sequence[Object]) -> Counter[str]:
    return Counter(map(_phase, pods))


def _owner(pods: Sequence[Object]) -> str:
    """`occupiedBy`: namespace and name of what owns the first pod."""
    for owner in owner_references_of(pods[0]) if pods else []:
        return f"{pods[0]['metadata'].get('namespace')}/{owner['name']}"
    return ""
