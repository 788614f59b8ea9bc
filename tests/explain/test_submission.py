"""What would hold a TrainJob that is not submitted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.explain.samples import GPU, node
from trainer.explain import Subject, Verdict
from trainer.explain.submission import DryRunRefusal, Inventory, PodPlan, check_submission

if TYPE_CHECKING:
    from trainer.kube.objects import Object

JOB = Subject("TrainJob", "demo", "default")


def plan(count: int = 2, **requests: str) -> PodPlan:
    amounts = {name.replace("gpu", GPU): amount for name, amount in requests.items()}
    return PodPlan("node", count, {"containers": [{"name": "trainer", "resources": {"limits": amounts}}]})


def quota(used: Object | None = None, *, spec: Object | None = None, **hard: str) -> Object:
    limits = {name.replace("_", "."): amount for name, amount in hard.items()}
    return {"metadata": {"name": "team"}, "spec": spec or {}, "status": {"hard": limits, "used": used or {}}}


GPU_QUOTA: Object = {"metadata": {"name": "team"}, "spec": {"hard": {f"requests.{GPU}": "4"}}}


@pytest.mark.parametrize(
    ("wanted", "there", "message", "remedy"),
    [
        pytest.param(
            plan(),
            {"refusals": [DryRunRefusal(JOB, "spec.trainer.numNodes: Invalid value: 0: must be positive")]},
            "the cluster refuses TrainJob demo: spec.trainer.numNodes",
            "change what the message names",
            id="refused",
        ),
        pytest.param(
            plan(),
            {
                "refusals": [
                    DryRunRefusal(Subject("Pod", "of node"), 'serviceaccount "nobody" not found'),
                ]
            },
            "the cluster refuses Pod of node",
            "kubectl create serviceaccount nobody",
            id="service-account",
        ),
        pytest.param(
            plan(),
            {"missing": [(Subject("Secret", "pull", "default"), "imagePullSecrets")]},
            "Secret pull does not exist, which imagePullSecrets names",
            "create it",
            id="missing",
        ),
        pytest.param(plan(), {"nodes": []}, "the cluster has no nodes", "have nodes added", id="no-nodes"),
        pytest.param(
            plan(gpu="8"),
            {"nodes": [node(gpu="4")]},
            f"a pod asks for 8 of {GPU}, and the largest node that it may run on, a, has 4",
            "ask for at most 4",
            id="too-large",
        ),
        pytest.param(
            plan(4, gpu="4"),
            {"nodes": [node("a", gpu="8"), node("b", gpu="4")]},
            "4 pods of node would be made, and the nodes, if empty, take 3",
            "ask for at most 3 nodes",
            id="too-many",
        ),
        pytest.param(
            plan(2, cpu="3"),
            {"quotas": [quota({"requests.cpu": "2"}, requests_cpu="6")]},
            "the quota team has too little left: requests.cpu: 6 asked for, 2 of 6 used",
            "have the quota raised",
            id="quota",
        ),
        pytest.param(plan(2), {"quotas": [quota(pods="1")]}, "pods: 2 asked for, 0 of 1 used", "", id="quota-of-pods"),
        pytest.param(
            plan(2, cpu="3"),
            {"quotas": [quota(limits_cpu="5")]},
            "limits.cpu: 6 asked for, 0 of 5 used",
            "",
            id="quota-of-limits",
        ),
        pytest.param(
            plan(2, gpu="3"),
            {"quotas": [GPU_QUOTA]},
            f"requests.{GPU}: 6 asked for",
            "",
            id="quota-of-gpus",
        ),
    ],
)
def test_causes(wanted: PodPlan, there: dict[str, Any], message: str, remedy: str) -> None:
    """Each thing that would hold it is a cause with a remedy."""
    answer = check_submission("default", [wanted], Inventory(**there))
    (cause,) = answer.causes
    assert message in cause.message
    assert remedy in cause.remedy
    assert cause.command.startswith("kubectl ")
    assert answer.verdict == (Verdict.FAILED if cause.about == JOB else Verdict.WAITING)


@pytest.mark.parametrize(
    "there",
    [
        pytest.param({}, id="nothing-known"),
        pytest.param({"nodes": [node()]}, id="room"),
        pytest.param({"quotas": [quota(pods="1", spec={"scopes": ["Terminating"]})]}, id="quota-of-others"),
        pytest.param({"quotas": [quota(pods="many")]}, id="unreadable-quota"),
        pytest.param({"quotas": [quota(requests_cpu="2")]}, id="quota-that-is-enough"),
    ],
)
def test_nothing_would_hold_it(there: dict[str, Any]) -> None:
    """What is enough, or not known, is no cause."""
    assert check_submission("default", [plan(2, cpu="1")], Inventory(**there)).verdict is Verdict.RUNNING


def test_limits_of_the_namespace_count() -> None:
    """A LimitRange gives requests to containers without any."""
    limits = {"metadata": {"name": "a"}, "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "4"}}]}}
    there = Inventory(quotas=[quota(requests_cpu="6")], limit_ranges=[limits])
    (cause,) = check_submission("default", [plan(2)], there).causes
    assert "requests.cpu: 8 asked for" in cause.message
