"""What Kueue says of a Workload that does not run: why, and what helps.

The reasons are those of the condition QuotaReserved; older releases of Kueue know `Inadmissible` and `Pending` alone.
One that is not known here is quoted with its message, and nothing is concluded from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from trainer.kube.objects import Object, find_condition, is_condition_true, mapping_at, objects_in

INACTIVE: Final = "WorkloadInactive"
"""The reason of a Workload that somebody, or Kueue itself, has deactivated."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a Workload stands that its job waits for."""

    reason: str
    """Kueue's word where it is one of a kind, else `Queued`."""
    message: str
    """What holds it, and what Kueue says about it; empty if it says nothing."""
    remedy: str
    waits: bool = True
    """Whether it may start without anybody's doing."""


_QUEUED: Final = Standing("Queued", "", "wait until quota is free, or ask for less or for another queue")
_QUOTA: Final = {
    "": _QUEUED,
    "Pending": Standing(
        "Queued",
        "",
        "wait until quota is free; what exceeds the maximum capacity, or matches no flavor, has to ask for something "
        "else or for another queue",
    ),
    "PendingEvaluation": Standing("Queued", "", "wait: Kueue is about to look at it"),
    "WaitingForQuota": _QUEUED,
    "WaitingForPreemptedWorkloads": Standing(
        "Queued", "those that it preempts have yet to end", "wait until their pods are gone"
    ),
    "WaitingForPodsReady": Standing(
        "Queued", "others were admitted before it", "wait until the pods of those are ready, or have them looked at"
    ),
    "TopologyPlacementFailed": Standing(
        "TopologyPlacementFailed",
        "no domain of the topology has room for it",
        "wait until nodes that are close to each other are free, or require a wider domain",
    ),
    "ExceedsMaxQuota": Standing(
        "ExceedsMaxQuota",
        "asks for more than its queue can ever give",
        "ask for fewer nodes or less of the resource, name another queue, or have its quota raised",
        waits=False,
    ),
    "NoMatchingFlavor": Standing(
        "NoMatchingFlavor",
        "no flavor of its queue has what it asks for",
        "ask for resources that the queue has, correct node selectors and tolerations, or name another queue",
        waits=False,
    ),
    "Misconfigured": Standing(
        "Misconfigured",
        "its queue cannot take it",
        "correct what Kueue names: a queue that exists, requests within the limits of the namespace; or have the queue "
        "repaired",
        waits=False,
    ),
    "Inadmissible": Standing(
        "Inadmissible",
        "its queue cannot take it",
        "name a queue that exists and is active, or have it repaired",
        waits=False,
    ),
    "Suspended": Standing(
        "QueueStopped",
        "its queue is stopped",
        "have the stopPolicy of the LocalQueue or ClusterQueue lifted, or the queue repaired; or name another queue",
        waits=False,
    ),
    "AdmissionGated": Standing(
        "AdmissionGated",
        "is kept from admission by a gate",
        "whoever has set the annotation kueue.x-k8s.io/admission-gated-by removes it",
        waits=False,
    ),
    "OnHold": Standing("OnHold", "is on hold", "whoever holds it lets it go", waits=False),
}
"""By the reason of QuotaReserved when it is False, and by "" before there is one."""
_AFTER_EVICTION: Final = {
    "PodsReadyTimeout": "find out why its pods were not ready in time, such as an image or nodes that are missing; "
    "Kueue admits it again after a pause",
    "AdmissionCheck": "wait until the admission check is tried again, or have its controller checked",
    "ClusterQueueStopped": _QUOTA["Suspended"].remedy,
    "LocalQueueStopped": _QUOTA["Suspended"].remedy,
    "NodeFailures": "wait until other nodes are free; Kueue admits it again",
}
"""What helps after an eviction, while Kueue has nothing to say but that it waits."""


def standing_of(workload: Object) -> Standing:
    """Where a Workload stands that is not admitted, or whose job has yet to be resumed."""
    reserved = find_condition(workload, "QuotaReserved") or {}
    if mapping_at(workload, "spec").get("active") is False:
        standing = Standing(
            INACTIVE,
            "is inactive",
            "correct what Kueue has deactivated it for, if it says so, then activate it",
            waits=False,
        )
    elif reserved.get("status") == "True":
        standing = _reserved(workload)
    else:
        standing = _unreserved(workload, reserved)
    said = [standing.message, *_checks(workload), *_eviction(workload)]
    if reserved.get("status") != "True":
        said.append(str(reserved.get("message") or ""))
    return Standing(standing.reason, "; ".join(filter(None, said)), standing.remedy, standing.waits)


def _reserved(workload: Object) -> Standing:
    checks = objects_in(mapping_at(workload, "status").get("admissionChecks"))
    if is_condition_true(workload, "Evicted"):
        return Standing("Evicted", "is being evicted", "wait until its pods are gone: then it is queued again")
    if is_condition_true(workload, "Admitted"):
        return Standing("Admitted", "is admitted", "have Kueue checked if it stays so: it resumes what is admitted")
    if any(check.get("state") == "Rejected" for check in checks):
        remedy = "correct what the admission check rejects; Kueue does not try it again by itself"
        return Standing("AdmissionCheck", "has its quota, and an admission check rejects it", remedy, waits=False)
    remedy = "wait for the admission check, or have its controller checked"
    return Standing("AdmissionCheck", "has its quota, and waits for admission checks", remedy)


def _unreserved(workload: Object, reserved: Object) -> Standing:
    reason = str(reserved.get("reason") or "")
    standing = _QUOTA.get(reason)
    if standing is None:
        remedy = f"see what Kueue means by {reason}: its message says what holds the Workload"
        return Standing("Queued", f"Kueue says {reason}", remedy)
    evicted = find_condition(workload, "Evicted") or {}
    if standing.reason == "Queued" and evicted.get("status") == "True":
        remedy = _AFTER_EVICTION.get(str(evicted.get("reason")), standing.remedy)
        return Standing(standing.reason, standing.message, remedy)
    return standing


def _checks(workload: Object) -> Iterator[str]:
    for check in objects_in(mapping_at(workload, "status").get("admissionChecks")):
        if check.get("state") != "Ready":
            yield f"{check.get('name')}: {check.get('state')} {check.get('message') or ''}".rstrip()


def _eviction(workload: Object) -> Iterator[str]:
    evicted = find_condition(workload, "Evicted") or {}
    if evicted.get("status") == "True":
        yield f"was evicted ({evicted.get('reason')}): {evicted.get('message')}"
    again = mapping_at(workload, "status", "requeueState").get("requeueAt")
    if again:
        yield f"Kueue tries it again at {again}"
