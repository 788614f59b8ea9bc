"""Nodes that are lost with pods of a training on them."""

from __future__ import annotations

import pytest

from tests.explain.samples import MADE, answer, condition, jobset, lost, node, running, train_job, unscheduled
from trainer.explain import Unread, Verdict
from trainer.kube.objects import Object

TAINT = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute", "timeAdded": "2026-01-01T00:58:02Z"}
OUT_OF_SERVICE = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
LOST = node(taints=[TAINT], ready=condition("Ready", "Unknown", "NodeStatusUnknown"))
DELETED: Object = {"deletionTimestamp": "2026-01-01T00:59:30Z", "deletionGracePeriodSeconds": 30}
STAYS = "they stay Terminating, and none takes their place, until it is back or somebody takes it out of service"
EVICTED = "unless it is back by then, Kubernetes deletes its pods"
LATER = f"{EVICTED} at 2026-01-01T01:03:00Z, in 180 s (tolerationSeconds); {STAYS}"
SILENT = "its kubelet does not answer, so its programs may still be running"


@pytest.mark.parametrize(
    ("objects", "message", "details"),
    [
        pytest.param(
            [running(0), lost(1), LOST],
            f"node a is not ready since {MADE}, with pod demo-node-0-1-abcde on it: {SILENT}",
            [f"{EVICTED} at 2026-01-01T01:03:02Z, in 182 s (tolerationSeconds); {STAYS}"],
            id="one of two",
        ),
        pytest.param(
            [lost(0), lost(1, seconds=100), LOST],
            f"with pods demo-node-0-0-abcde, demo-node-0-1-abcde on it: {SILENT}",
            [f"{EVICTED} now (tolerationSeconds); {STAYS}"],
            id="the first of both",
        ),
        pytest.param(
            [lost(seconds=None), LOST],
            SILENT,
            ["its pods tolerate that without an end, so that Kubernetes deletes none of them by itself"],
            id="tolerated",
        ),
        pytest.param(
            [lost(metadata=DELETED), LOST],
            SILENT,
            [f"its pods have been deleted at 2026-01-01T00:59:00Z; {STAYS}"],
            id="deleted",
        ),
        pytest.param(
            [lost(metadata=DELETED), node(taints=[TAINT, OUT_OF_SERVICE])],
            SILENT,
            ["it is out of service, so that Kubernetes deletes its pods by force within half a minute"],
            id="out of service",
        ),
        pytest.param(
            [lost(), node(taints=[TAINT, OUT_OF_SERVICE | {"effect": "NoSchedule"}])],
            SILENT,
            [f"{EVICTED} at 2026-01-01T01:03:02Z, in 182 s (tolerationSeconds); {STAYS}"],
            id="out of service for new pods",
        ),
        pytest.param(
            [lost(), node(ready=condition("Ready", "False", "KubeletNotReady", "container runtime is down"))],
            "its kubelet says so (container runtime is down)",
            [LATER],
            id="not ready",
        ),
        pytest.param(
            [lost(), node(ready=condition("Ready"))],
            "it is back, and its kubelet has yet to say how its pods are",
            [],
            id="back",
        ),
        pytest.param(
            [lost(), node("other")],
            "it does not exist any more",
            ["the garbage collection of pods deletes them within a minute, because they have no node"],
            id="gone",
        ),
    ],
)
def test_lost_node(objects: list[Object], message: str, details: list[str]) -> None:
    """The cause names node, pods and since when; below it is what Kubernetes does, and when."""
    explanation = answer(train_job(state="Running"), jobset(nodes=1, ready=1), *objects)
    [cause] = explanation.causes
    assert (explanation.verdict, cause.reason, str(cause.about)) == (Verdict.WAITING, "NodeNotReady", "Node a")
    assert message in cause.message
    assert list(cause.details) == details
    assert cause.command == "kubectl describe node a"


def test_remedy() -> None:
    """It says when not to run the two commands of which a person may run one."""
    [cause] = answer(train_job(), jobset(ready=1), lost(0), lost(1), LOST).causes
    assert "and not before" in cause.remedy
    assert cause.commands == (
        "kubectl taint nodes a node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
        "kubectl delete node a",
    )


def test_remedy_once_it_is_out_of_service() -> None:
    """What is left to do is to take the taint away."""
    [cause] = answer(train_job(), jobset(ready=1), lost(0), lost(1), node(taints=[TAINT, OUT_OF_SERVICE])).causes
    assert cause.commands == ("kubectl taint nodes a node.kubernetes.io/out-of-service-",)


def test_node_that_may_not_be_read() -> None:
    """What shows on the pods is enough to say what Kubernetes will do."""
    [cause] = answer(train_job(), jobset(nodes=1, ready=1), lost(), unread=(Unread("nodes", "forbidden"),)).causes
    assert SILENT in cause.message
    assert "at 2026-01-01T01:03:00Z, in 180 s" in cause.details[0]


def test_other_causes_follow() -> None:
    """What else holds the training comes after the node, which may be its reason."""
    found = answer(train_job(), jobset(), lost(0), unscheduled("0/1 nodes are available", 1), LOST)
    assert [cause.reason for cause in found.causes][:2] == ["NodeNotReady", "Unschedulable"]
