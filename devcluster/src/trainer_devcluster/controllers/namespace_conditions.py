"""Conditions of a namespace that is being deleted: what is in the way (core/v1 NamespaceCondition)."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from typing import TYPE_CHECKING

from trainer.kube.objects import find_condition, metadata_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trainer.kube.objects import Object
    from trainer.kube.resource import Resource

_ALL_WELL = (
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
)


def with_conditions(status: Object, remaining: Mapping[Resource, Sequence[Object]], now: str) -> Object:
    """The status of a namespace in which these objects are left; equal to the given one when nothing is new.

    Args:
        status: the present status.
        remaining: what is left, by resource.
        now: the time of changes.
    """
    updated: Object = deepcopy(status)
    for kind, reason, message in _ALL_WELL:
        _set(updated, kind, is_true=False, reason=reason, message=message, now=now)
    numbers = sorted(
        f"{resource.plural}.{resource.group} has {len(objects)} resource instances"
        for resource, objects in remaining.items()
        if objects
    )
    finalizers = Counter(
        name for objects in remaining.values() for obj in objects for name in metadata_of(obj).get("finalizers") or []
    )
    holding = sorted(f"{name} in {number} resource instances" for name, number in finalizers.items())
    _set(
        updated,
        "NamespaceContentRemaining",
        is_true=bool(numbers),
        reason="SomeResourcesRemain" if numbers else "ContentRemoved",
        message=f"Some resources are remaining: {', '.join(numbers)}"
        if numbers
        else "All content successfully removed",
        now=now,
    )
    _set(
        updated,
        "NamespaceFinalizersRemaining",
        is_true=bool(holding),
        reason="SomeFinalizersRemain" if holding else "ContentHasNoFinalizers",
        message=f"Some content in the namespace has finalizers remaining: {', '.join(holding)}"
        if holding
        else "All content-preserving finalizers finished",
        now=now,
    )
    return updated


def _set(status: Object, kind: str, *, is_true: bool, reason: str, message: str, now: str) -> None:
    condition = {"type": kind, "status": "True" if is_true else "False", "reason": reason, "message": message}
    present = find_condition({"status": status}, kind)
    if present is None:
        status.setdefault("conditions", []).append({**condition, "lastTransitionTime": now})
    elif not condition.items() <= present.items():
        present |= {**condition, "lastTransitionTime": now}
