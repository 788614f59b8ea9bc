"""Whether the node takes a pod."""

from __future__ import annotations

import pytest

from packages.devcluster.tests.scheduler.objects import candidate, make_node
from trainer.kube.objects import Object
from trainer_devcluster.scheduler.node_fit import FitFailure, Room

GPU = "nvidia.com/gpu"
SELECTOR = "node(s) didn't match Pod's node affinity/selector"
TAINTED = "node(s) had untolerated taint(s)"


def affinity(*terms: Object) -> Object:
    """Required node affinity."""
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def expression(key: str, operator: str, *values: str, kind: str = "matchExpressions") -> Object:
    """A term with one requirement."""
    return {kind: [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        pytest.param({"affinity": affinity(expression("gpu", "Exists"), expression("cores", "Exists"))}, True, id="or"),
        pytest.param({"affinity": affinity({})}, False, id="empty-term"),
    ],
)
def test_node_selection(spec: Object, fits: bool) -> None:
    """Node selector and required affinity must both match; of several terms one is enough."""
    refusal = Room(make_node(), []).refusal(candidate(**spec))
    assert refusal == (None if fits else FitFailure((SELECTOR,)))


@pytest.mark.parametrize(
    ("tolerations", "fits"),
    [
        pytest.param([], False, id="none"),
        pytest.param([{"key": "gpu", "operator": "Exists"}], True, id="tolerated"),
    ],
)
def test_taints(tolerations: list[Object], fits: bool) -> None:
    """Taints keep pods away that do not tolerate them."""
    node = make_node(taints=[{"key": "gpu", "effect": "NoSchedule"}])
    refusal = Room(node, []).refusal(candidate(tolerations=tolerations))
    assert refusal == (None if fits else FitFailure((TAINTED,)))


def test_number_of_pods() -> None:
    """The node takes so many pods and no more, until one gives its place back."""
    node = make_node()
    node["status"]["allocatable"]["pods"] = "1"
    other = candidate("other")
    room = Room(node, [other])
    assert room.refusal(candidate()) == FitFailure(("Too many pods",), may_pass=True)
    room.give_back(other)
    assert room.refusal(candidate()) is None
