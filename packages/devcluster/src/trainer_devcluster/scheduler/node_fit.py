"""Whether the node takes a pod: what is looked at, in the order and with the words of kube-scheduler.

Looked at are `spec.unschedulable`, taints, `nodeSelector`, required node affinity, the number of pods, and requests for
every resource against what the node has allocatable. Preferences are moot with one node, and so is how pods are spread
over several (`podAffinity`, `podAntiAffinity`, `topologySpreadConstraints`): what is written for a cluster shall run on
a laptop. Ports and volumes are left to the kubelet.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from trainer.kube.objects import Object, labels_of, name_of, objects_in
from trainer.kube.quantity import Quantity, parse_quantity
from trainer.kube.selectors import Operator, Requirement
from trainer.workloads.tolerations import NO_SCHEDULE, UNSCHEDULABLE, tolerates, untolerated
from trainer_devcluster.scheduler.candidate import Candidate

_OPERATORS: Final = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
    "Gt": Operator.GREATER_THAN,
    "Lt": Operator.LESS_THAN,
}
_CORDONED: Final[Object] = {"key": UNSCHEDULABLE, "effect": NO_SCHEDULE}


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


@dataclass(frozen=True, slots=True)
class FitFailure:
    """Why the node does not take a pod."""

    reasons: tuple[str, ...]
    may_pass: bool = False
    """Whether it would if other pods were not there. Default: no."""

    def __str__(self) -> str:
        return ", ".join(sorted(f"1 {reason}" for reason in self.reasons))


class Room:
    """The free resources of the node while pods are placed on it."""

    def __init__(self, node: Object, placed: Iterable[Candidate]) -> None:
        self._node = node
        self._taints = objects_in((node.get("spec") or {}).get("taints"))
        self._allocatable = _allocatable(node)
        self._taken: defaultdict[str, Decimal] = defaultdict(Decimal)
        self._placed: dict[str, Candidate] = {}
        for candidate in placed:
            self.take(candidate)

    @property
    def placed(self) -> Iterable[Candidate]:
        """The pods on the node."""
        return self._placed.values()

    def take(self, candidate: Candidate) -> None:
        """Place a pod, whether it fits or not."""
        self._placed[candidate.uid] = candidate
        self._taken["pods"] += 1
        for name, amount in candidate.requests.items():
            self._taken[name] += amount

    def give_back(self, candidate: Candidate) -> None:
        """Take a placed pod away again."""
        del self._placed[candidate.uid]
        self._taken["pods"] -= 1
        for name, amount in candidate.requests.items():
            self._taken[name] -= amount

    def refusal(self, candidate: Candidate) -> FitFailure | None:
        """Why the node does not take this pod; None if it does."""
        if (self._node.get("spec") or {}).get("unschedulable") and not tolerates(candidate.tolerations, _CORDONED):
            return FitFailure(("node(s) were unschedulable",))
        if untolerated(self._taints, candidate.tolerations):
            return FitFailure(("node(s) had untolerated taint(s)",))
        if not matches_node(candidate, self._node):
            return FitFailure(("node(s) didn't match Pod's node affinity/selector",))
        return self.shortage(candidate)

    def gap(self, wanted: Mapping[str, object], without: Iterable[Candidate]) -> str:
        """How much of these resources is lacking, if some placed pods are not counted; "" if nothing."""
        freed: defaultdict[str, Decimal] = defaultdict(Decimal)
        for candidate in without:
            for name, amount in candidate.requests.items():
                freed[name] += amount
        lacking = []
        for name, text in sorted(wanted.items()):
            try:
                quantity = Quantity.parse(text)
            except ValueError as error:
                lacking.append(f"{name} {error}")
                continue
            short = quantity.amount - (self._free(name) + freed[name])
            if short > 0:
                lacking.append(f"{name} {Quantity(short, quantity.is_binary)}")
        return ", ".join(lacking)

    def has_victims(self, candidate: Candidate) -> bool:
        """Whether a scheduler that preempts would find pods of a lower priority."""
        return any(placed.priority < candidate.priority for placed in self._placed.values())

    def shortage(self, candidate: Candidate) -> FitFailure | None:
        """Which resources are lacking for this pod; None if none is."""
        reasons, may_pass = [], True
        if self._free("pods") < 1:
            reasons.append("Too many pods")
        for name, amount in candidate.requests.items():
            if amount > self._free(name):
                reasons.append(f"Insufficient {name}")
                may_pass = may_pass and amount <= self._allocatable.get(name, 0)
        return FitFailure(tuple(reasons), may_pass) if reasons else None

    def _free(self, name: str) -> Decimal:
        return self._allocatable.get(name, Decimal()) - self._taken[name]


def _allocatable(node: Object) -> dict[str, Decimal]:
    """What is allocatable; nothing of what makes no sense, as anybody may patch the status."""
    amounts: dict[str, Decimal] = {}
    for name, text in ((node.get("status") or {}).get("allocatable") or {}).items():
        with suppress(ValueError):
            amounts[name] = parse_quantity(text)
    return amounts
