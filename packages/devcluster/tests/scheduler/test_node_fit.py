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
        pytest.param({"nodeSelector": {"cores": "4"}}, True, id="selector"),
        pytest.param({"nodeSelector": {"cores": "8"}}, False, id="other-value"),
        pytest.param({"nodeSelector": {"gpu": "a100"}}, False, id="no-such-label"),
        pytest.param({"affinity": affinity(expression("cores", "In", "2", "4"))}, True, id="in"),
        pytest.param({"affinity": affinity(expression("cores", "NotIn", "4"))}, False, id="not-in"),
        pytest.param({"affinity": affinity(expression("gpu", "NotIn", "4"))}, True, id="not-in-absent"),
        pytest.param({"affinity": affinity(expression("cores", "Gt", "3"))}, True, id="greater"),
        pytest.param({"affinity": affinity(expression("cores", "Lt", "3"))}, False, id="less"),
        pytest.param({"affinity": affinity(expression("cores", "Exists"))}, True, id="exists"),
        pytest.param({"affinity": affinity(expression("gpu", "DoesNotExist"))}, True, id="does-not-exist"),
        pytest.param({"affinity": affinity(expression("gpu", "Exists"), expression("cores", "Exists"))}, True, id="or"),
        pytest.param({"affinity": affinity({})}, False, id="empty-term"),
        pytest.param({"affinity": affinity()}, False, id="no-term"),
        pytest.param(
            {"affinity": affinity(expression("metadata.name", "In", "laptop", kind="matchFields"))}, True, id="name"
        ),
        pytest.param(
            {"affinity": affinity(expression("metadata.name", "In", "other", kind="matchFields"))},
            False,
            id="other-name",
        ),
        pytest.param(
            {"affinity": affinity(expression("cores", "Exists")), "nodeSelector": {"cores": "8"}}, False, id="both"
        ),
    ],
)
def test_node_selection(spec: Object, fits: bool) -> None:
    """Node selector and required affinity must both match; of several terms one is enough."""
    refusal = Room(make_node(), []).refusal(candidate(**spec))
    assert refusal == (None if fits else FitFailure((SELECTOR,)))


@pytest.mark.parametrize(
    ("taint", "toleration", "fits"),
    [
        pytest.param({"key": "gpu", "value": "yes", "effect": "NoSchedule"}, None, False, id="tainted"),
        pytest.param({"key": "gpu", "effect": "PreferNoSchedule"}, None, True, id="preference"),
        pytest.param({"key": "gpu", "effect": "NoExecute"}, {"key": "gpu", "operator": "Exists"}, True, id="exists"),
        pytest.param({"key": "gpu", "effect": "NoExecute"}, {"operator": "Exists"}, True, id="everything"),
        pytest.param(
            {"key": "gpu", "value": "yes", "effect": "NoSchedule"}, {"key": "gpu", "value": "yes"}, True, id="equal"
        ),
        pytest.param(
            {"key": "gpu", "value": "yes", "effect": "NoSchedule"}, {"key": "gpu", "value": "no"}, False, id="unequal"
        ),
        pytest.param(
            {"key": "gpu", "effect": "NoSchedule"},
            {"key": "gpu", "operator": "Exists", "effect": "NoExecute"},
            False,
            id="other-effect",
        ),
    ],
)
def test_taints(taint: Object, toleration: Object | None, fits: bool) -> None:
    """Taints keep pods away that do not tolerate them, except those that only prefer to."""
    refusal = Room(make_node(taints=[taint]), []).refusal(candidate(tolerations=[toleration] if toleration else []))
    assert refusal == (None if fits else FitFailure((TAINTED,)))


def test_cordoned_node() -> None:
    """A cordoned node takes only what tolerates that."""
    room = Room(make_node(unschedulable=True), [])
    assert room.refusal(candidate()) == FitFailure(("node(s) were unschedulable",))
    toleration = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}
    assert room.refusal(candidate(tolerations=[toleration])) is None


def test_node_that_is_not_ready() -> None:
    """It counts as tainted, as the node controller of a real cluster taints it."""
    assert Room(make_node(ready=False), []).refusal(candidate()) == FitFailure((TAINTED,))


@pytest.mark.parametrize(
    ("placed", "wanted", "expected"),
    [
        pytest.param({}, {"cpu": "4"}, None, id="exactly"),
        pytest.param({"cpu": "1"}, {"cpu": "3500m"}, FitFailure(("Insufficient cpu",), may_pass=True), id="taken"),
        pytest.param({}, {"cpu": "4001m"}, FitFailure(("Insufficient cpu",)), id="too-large"),
        pytest.param({}, {GPU: "3"}, FitFailure((f"Insufficient {GPU}",)), id="extended"),
        pytest.param({}, {"example.com/fpga": "1"}, FitFailure(("Insufficient example.com/fpga",)), id="unknown"),
        pytest.param({}, {"example.com/fpga": "0"}, None, id="nothing-of-it"),
        pytest.param(
            {"cpu": "4"},
            {"cpu": "1", "memory": "9Gi"},
            FitFailure(("Insufficient cpu", "Insufficient memory")),
            id="several",
        ),
    ],
)
def test_requests(placed: Object, wanted: Object, expected: FitFailure | None) -> None:
    """Requests are counted against what is allocatable and not taken."""
    room = Room(make_node(), [candidate("other", placed)])
    assert room.refusal(candidate("pod", wanted)) == expected


def test_number_of_pods() -> None:
    """The node takes so many pods and no more, until one gives its place back."""
    node = make_node()
    node["status"]["allocatable"]["pods"] = "1"
    other = candidate("other")
    room = Room(node, [other])
    assert room.refusal(candidate()) == FitFailure(("Too many pods",), may_pass=True)
    room.give_back(other)
    assert room.refusal(candidate()) is None


def test_effective_requests() -> None:
    """Init containers, sidecars and overhead count as Kubernetes has it."""
    init = [
        {"name": "sidecar", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
        {"name": "init", "resources": {"requests": {"cpu": "2500m"}}},
    ]
    pod = candidate("pod", {"cpu": "1"}, initContainers=init, overhead={"cpu": "250m"})
    assert Room(make_node(), [candidate("other", {"cpu": "250m"})]).refusal(pod) is None
    assert Room(make_node(), [candidate("other", {"cpu": "251m"})]).refusal(pod) is not None


def test_reasons_are_sorted_and_counted() -> None:
    """The message has the reasons in alphabetical order, each with the number of nodes."""
    assert str(FitFailure(("Too many pods", "Insufficient cpu"))) == "1 Insufficient cpu, 1 Too many pods"


def test_nonsense_on_the_node() -> None:
    """An amount that makes no sense counts as nothing."""
    node = make_node()
    node["status"]["allocatable"][GPU] = "many"
    assert Room(node, []).refusal(candidate("pod", {GPU: "1"})) == FitFailure((f"Insufficient {GPU}",))
