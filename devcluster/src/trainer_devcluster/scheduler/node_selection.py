"""Node selectors and required node affinity (Kubernetes documentation, "Assigning Pods to Nodes")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainer.kube.objects import labels_of, name_of
from trainer.kube.selectors import Operator, Requirement

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from trainer.kube.objects import Object
    from trainer_devcluster.scheduler.candidate import Candidate

_OPERATORS: Final = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
    "Gt": Operator.GREATER_THAN,
    "Lt": Operator.LESS_THAN,
}
UNSCHEDULABLE: Final[Object] = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
"""The taint that a cordoned node has."""


def matches_node(candidate: Candidate, node: Object) -> bool:
    """Whether the node has the labels that the pod wants, and is matched by one of its affinity terms."""
    labels, terms = labels_of(node), candidate.node_affinity
    if any(labels.get(key) != value for key, value in candidate.node_selector.items()):
        return False
    return terms is None or any(_term_matches(term, labels, name_of(node)) for term in terms)


def _term_matches(term: Object, labels: Mapping[str, str], name: str) -> bool:
    """A term without any requirement matches nothing."""
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False
    return all(_holds(entry, labels) for entry in expressions) and all(
        _holds(entry, {"metadata.name": name}) for entry in fields
    )


def _holds(entry: Object, values: Mapping[str, str]) -> bool:
    operator = _OPERATORS.get(entry.get("operator") or "")
    if operator is None:
        return False
    return Requirement(entry.get("key") or "", operator, tuple(entry.get("values") or ())).matches(values)


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
        case _:
            return False
