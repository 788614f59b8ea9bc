"""Node selectors and required node affinity (Kubernetes documentation, "Assigning Pods to Nodes")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainer.kube.objects import labels_of, name_of
from trainer.kube.selectors import Operator, Requirement

if TYPE_CHECKING:
    from collections.abc import Mapping

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
