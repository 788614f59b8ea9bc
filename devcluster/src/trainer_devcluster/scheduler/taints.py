"""Taints and tolerations (Kubernetes documentation, "Taints and Tolerations")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from trainer.kube.objects import Object

UNSCHEDULABLE: Final[Object] = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
"""The taint that a cordoned node has."""


def tolerates(tolerations: Iterable[Object], taint: Object) -> bool:
    """Whether one of the tolerations is for this taint."""
    return any(_is_for(toleration, taint) for toleration in tolerations)


def untolerated(taints: Iterable[Object], tolerations: Sequence[Object], effects: Container[str]) -> list[Object]:
    """The taints with one of these effects that nothing tolerates."""
    return [taint for taint in taints if taint.get("effect") in effects and not tolerates(tolerations, taint)]


def _is_for(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    key, value = toleration.get("key") or "", taint.get("value") or ""
    if key and key != taint.get("key"):
        return False
    match toleration.get("operator") or "Equal":
        case "Exists":
            return True
        case "Equal":
            return bool(key) and (toleration.get("value") or "") == value
        case "Gt" | "Lt" as operator:
            return _compares(value, str(toleration.get("value") or ""), greater=operator == "Gt")
        case _:
            return False


def _compares(taint: str, toleration: str, *, greater: bool) -> bool:
    """The value of the taint against that of the toleration, both whole numbers."""
    try:
        number, bound = int(taint), int(toleration)
    except ValueError:
        return False
    return number > bound if greater else number < bound
