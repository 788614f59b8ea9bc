"""Pods without a node or a scheduler's reason: their claims are not bound, or their scheduler does not run."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from trainer.api.trainjob_status import ConditionReason
from trainer.kube.objects import ObjectKey, namespace_of
from trainer.kube.resource import PERSISTENT_VOLUME_CLAIMS, PODS
from trainer.plugins.jobset.claims import ephemeral_volumes, shared_claims
from trainer.plugins.jobset.complaints import latest_complaint
from trainer.plugins.jobset.missing_objects import Named
from trainer.plugins.jobset.wait import Waiting, cannot_start

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

    from trainer.plugins.jobset.complaints import Complaint
    from trainer.plugins.jobset.pod_troubles import Troubles

_DEBOUNCE = 30
"""Seconds before it is reported: a scheduler with a long queue and a new volume take some."""

_EXAMPLES = 8
"""Most pods whose own claims are read: a JobSet may have thousands of pods with a hundred volumes each."""


def unscheduled(troubles: Troubles, without_claims: AbstractSet[ObjectKey]) -> Iterator[Waiting]:
    """Claims that are not bound, and pods without a reaction of a scheduler.

    Args:
        troubles: of the JobSet.
        without_claims: pods whose scheduler says that it waits for a claim, but not for what the claim waits.
    """
    unseen = troubles.unseen()
    if not unseen and not without_claims:
        return
    claims = _unbound_claims(troubles, unseen | without_claims)
    yield from claims.values()
    # A scheduler that has found a node for a pod is silent while it waits for claims, or for the rest of a gang.
    if unseen and not claims and not troubles.waiting():
        yield from _unseen(troubles, unseen)


def _unseen(troubles: Troubles, unseen: AbstractSet[ObjectKey]) -> Iterator[Waiting]:
    example = min(unseen)
    pod = troubles.reader.get(PODS, example)
    if pod is None:
        return
    scheduler = (pod.get("spec") or {}).get("schedulerName") or "default-scheduler"
    message = f"no scheduler called {scheduler} has looked at it; is one installed under this name, and does it run?"
    missing = Named("scheduler", scheduler)
    yield cannot_start(ConditionReason.NO_SCHEDULER, unseen, pod, message, missing=missing, debounce=_DEBOUNCE)


def _unbound_claims(troubles: Troubles, pods: AbstractSet[ObjectKey]) -> dict[str, Waiting]:
    """By reason, the first claim with an event that it cannot be bound.

    Claims are known by their names, for the manager may not read them.
    """
    found: dict[str, Waiting] = {}
    for claim, complaint in _complaints(troubles, pods):
        debounce = 0 if complaint.is_warning else _DEBOUNCE
        missing = Named("persistentvolumeclaim", claim)
        waiting = Waiting(
            complaint.reason, "a volume claim is not bound", f"claim {claim}", complaint.message, missing=missing,
            debounce=debounce,
        )  # fmt: skip
        found.setdefault(complaint.reason, waiting)
    return found


def _complaints(troubles: Troubles, pods: AbstractSet[ObjectKey]) -> Iterator[tuple[str, Complaint]]:
    jobset, reader = troubles.jobset, troubles.reader
    examples = heapq.nsmallest(_EXAMPLES, pods)
    own = [f"{pod.name}-{volume}" for volume in ephemeral_volumes(jobset) for pod in examples]
    for claim in sorted({*shared_claims(jobset), *own}):
        key = ObjectKey(namespace_of(jobset), claim)
        complaint = latest_complaint(reader, PERSISTENT_VOLUME_CLAIMS, key)
        if complaint is not None:
            yield claim, complaint
