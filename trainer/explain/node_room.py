"""Which nodes could take a pod if they were empty, and what they lack otherwise.

What is free at present is not known: that takes the pods of all namespaces, which few users may read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from trainer.kube.objects import Object, labels_of, name_of, objects_in
from trainer.kube.quantity import Quantity
from trainer.kube.selectors import Operator, Requirement
from trainer.workloads.pod_requests import Amounts, pod_requests
from trainer.workloads.tolerations import untolerated

_OPERATORS = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
    "Gt": Operator.GREATER_THAN,
    "Lt": Operator.LESS_THAN,
}
_SHOWN = 5
"""Most values of a label that a sentence names."""
_NOTHING = Quantity()


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why no node takes a pod, even if it were empty."""

    text: str
    """The reason, as a part of a sentence."""
    remedy: str


def allocatable(node: Object) -> Amounts:
    """What pods of a node may request together; without amounts that cannot be read."""
    amounts: Amounts = {}
    for name, amount in ((node.get("status") or {}).get("allocatable") or {}).items():
        try:
            amounts[name] = Quantity.parse(amount)
        except ValueError:
            continue
    return amounts


def misfits(pod: Object, nodes: Sequence[Object]) -> Iterator[Misfit]:
    """What the spec of a pod asks for and no node has: labels, tolerated taints, and amounts of resources."""
    selected = [node for node in nodes if _is_selected(pod, labels_of(node))]
    if nodes and not selected:
        yield from _labels(pod, nodes)
        return
    open_nodes = [node for node in selected if not _repelling(pod, node)]
    if selected and not open_nodes:
        yield _taints(pod, selected)
        return
    try:
        requests = pod_requests(pod)
    except ValueError:
        return
    if open_nodes:
        yield from _amounts(requests, open_nodes)


def _amounts(requests: Amounts, nodes: Sequence[Object]) -> Iterator[Misfit]:
    present = [(name_of(node), allocatable(node)) for node in nodes]
    missing = False
    for name, amount in requests.items():
        largest, node = max(
            ((each.get(name, _NOTHING), node) for node, each in present), key=lambda pair: (pair[0].amount, pair[1])
        )
        if largest.amount >= amount.amount:
            continue
        missing = True
        if not largest.amount:
            text = f"no node that the pod may run on has {name}"
            remedy = f"ask for a resource that nodes have, or have the device plugin for {name} installed; wait if an "
            remedy += "autoscaler adds nodes that have it"
            yield Misfit(text, remedy if "/" in name else f"ask for no {name}")
        else:
            text = f"a pod asks for {amount} of {name}, and the largest node that it may run on, {node}, has {largest}"
            yield Misfit(text, f"ask for at most {largest} of {name}, or have larger nodes added")
    if missing:
        return
    if not any(_holds(each, requests) for _, each in present):
        wanted = ", ".join(f"{amount} of {name}" for name, amount in requests.items())
        yield Misfit(f"no single node has all that a pod asks for: {wanted}", "ask for less per node, on more nodes")


def _holds(present: Amounts, requests: Amounts) -> bool:
    return all(present.get(name, _NOTHING).amount >= amount.amount for name, amount in requests.items())


def _is_selected(pod: Object, labels: Mapping[str, str]) -> bool:
    wanted = (pod.get("nodeSelector") or {}).items()
    if any(labels.get(key) != value for key, value in wanted):
        return False
    terms = _terms(pod)
    return not terms or any(all(each.matches(labels) for each in term) for term in terms)


def _terms(pod: Object) -> list[list[Requirement]]:
    affinity = (pod.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return [
        [
            Requirement(str(each.get("key")), operator, tuple(map(str, each.get("values") or ())))
            for each in objects_in(term.get("matchExpressions"))
            if (operator := _OPERATORS.get(str(each.get("operator")))) is not None
        ]
        for term in objects_in(required.get("nodeSelectorTerms"))
    ]


def _labels(pod: Object, nodes: Sequence[Object]) -> Iterator[Misfit]:
    """One for each label that no node has as it is asked for; one for all if only their combination is missing."""
    asked = [Requirement(key, Operator.IN, (str(value),)) for key, value in (pod.get("nodeSelector") or {}).items()] + [
        each for term in _terms(pod) for each in term
    ]
    alone = [each for each in asked if not any(each.matches(labels_of(node)) for node in nodes)]
    for each in alone:
        values = sorted({labels_of(node)[each.key] for node in nodes if each.key in labels_of(node)})
        there = f"nodes have {', '.join(values[:_SHOWN])}" if values else "no node has this label"
        wanted = f"{each.key} {each.operator} {', '.join(each.values[:_SHOWN])}".rstrip()
        yield Misfit(f"the pod selects nodes by {wanted}, and {there}", f"select by values of {each.key} that exist")
    if not alone:
        yield Misfit("no node has all the labels that the pod selects nodes by", "select by fewer labels")


def _repelling(pod: Object, node: Object) -> list[Object]:
    """The taints of a node that a pod does not tolerate."""
    return untolerated(objects_in((node.get("spec") or {}).get("taints")), objects_in(pod.get("tolerations")))


def _taints(pod: Object, nodes: Sequence[Object]) -> Misfit:
    keys = {
        f"{taint.get('key')}{'=' + str(taint['value']) if taint.get('value') else ''}:{taint.get('effect')}"
        for node in nodes
        for taint in _repelling(pod, node)
    }
    shown = ", ".join(sorted(keys)[:_SHOWN])
    return Misfit(
        f"all nodes that the pod selects have taints that it does not tolerate: {shown}",
        "tolerate them (tolerations in spec.podSpecOverrides or in the runtime), or have nodes without",
    )
