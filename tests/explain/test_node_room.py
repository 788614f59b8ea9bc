"""Which nodes could take a pod, and what they lack."""

from __future__ import annotations

import pytest

from tests.explain.samples import GPU, node
from trainer.explain.node_room import allocatable, misfits
from trainer.kube.objects import Object
from trainer.kube.quantity import Quantity

TAINT: Object = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


def asking(**requests: str) -> Object:
    amounts = {name.replace("gpu", GPU): amount for name, amount in requests.items()}
    return {"containers": [{"name": "a", "resources": {"requests": amounts}}]}


def affinity(**expression: object) -> Object:
    terms = [{"matchExpressions": [expression]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": required}}


@pytest.mark.parametrize(
    ("pod", "nodes", "texts"),
    [
        pytest.param(asking(cpu="4"), [node()], [], id="fits"),
        pytest.param(asking(cpu="4"), [], [], id="no-nodes-known"),
        pytest.param(asking(cpu="many"), [node()], [], id="unreadable-amount"),
        pytest.param(asking(gpu="1"), [node()], [f"no node that the pod may run on has {GPU}"], id="no-gpus"),
        pytest.param(
            asking(cpu="9", gpu="1"),
            [node("a"), node("b", gpu="1")],
            ["a pod asks for 9 of cpu, and the largest node that it may run on, b, has 8"],
            id="larger-than-all",
        ),
        pytest.param(
            asking(cpu="8", gpu="4"),
            [node("a", cpu="2", gpu="8"), node("b", gpu="1")],
            [f"no single node has all that a pod asks for: 8 of cpu, 4 of {GPU}"],
            id="not-together",
        ),
        pytest.param(
            {"nodeSelector": {"gpu": "h100"}},
            [node(labels={"gpu": "l4"})],
            ["the pod selects nodes by gpu in h100, and nodes have l4"],
            id="label",
        ),
        pytest.param(
            {"nodeSelector": {"a": "1", "b": "2"}},
            [node(labels={"a": "1"}), node("b", labels={"b": "2"})],
            ["no node has all the labels that the pod selects nodes by"],
            id="labels-not-together",
        ),
        pytest.param(
            affinity(key="zone", operator="In", values=["x"]),
            [node(labels={"zone": "y"})],
            ["the pod selects nodes by zone in x, and nodes have y"],
            id="affinity",
        ),
        pytest.param(affinity(key="zone", operator="Exists"), [node(labels={"zone": "y"})], [], id="affinity-matches"),
        pytest.param(
            affinity(key="count", operator="Gt", values=["4"]),
            [node(labels={"count": "2"})],
            ["the pod selects nodes by count gt 4, and nodes have 2"],
            id="greater-than",
        ),
        pytest.param(
            {},
            [node(taints=[TAINT])],
            ["all nodes that the pod selects have taints that it does not tolerate: gpu=yes:NoSchedule"],
            id="taint",
        ),
        pytest.param(
            {"tolerations": [{"key": "gpu", "operator": "Exists"}]}, [node(taints=[TAINT])], [], id="tolerated"
        ),
        pytest.param({"tolerations": [{"key": "gpu", "value": "yes"}]}, [node(taints=[TAINT])], [], id="equal"),
        pytest.param({}, [node(taints=[TAINT | {"effect": "PreferNoSchedule"}])], [], id="preference"),
    ],
)
def test_misfits(pod: Object, nodes: list[Object], texts: list[str]) -> None:
    """What no node has, even if it were empty."""
    assert [each.text for each in misfits(pod, nodes)] == texts


def test_unreadable_amounts_of_nodes_do_not_count() -> None:
    """A node says what it likes."""
    assert allocatable({"status": {"allocatable": {"cpu": "x", "memory": "1Gi"}}}) == {"memory": Quantity.parse("1Gi")}
