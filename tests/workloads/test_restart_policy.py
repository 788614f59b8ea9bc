"""Whether containers are started again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trainer.workloads.restart_policy import RestartPolicy

if TYPE_CHECKING:
    from trainer.kube.objects import Object


def rule(operator: str, *values: int) -> Object:
    """A rule that restarts a container by its exit code."""
    return {"action": "Restart", "exitCodes": {"operator": operator, "values": list(values)}}


@pytest.mark.parametrize(
    ("pod_policy", "container", "init", "restarted"),
    [
        pytest.param("Never", {}, False, set(), id="never"),
        pytest.param("OnFailure", {}, False, {1, 42}, id="on failure"),
        pytest.param("Always", {}, False, {0, 1, 42}, id="always"),
        pytest.param("Always", {}, True, {1, 42}, id="an init container is done when it has succeeded"),
        pytest.param("Never", {}, True, set(), id="an init container of a pod that never restarts"),
        pytest.param("Never", {"restartPolicy": "Always"}, True, {0, 1, 42}, id="sidecar"),
        pytest.param("Always", {"restartPolicy": "Never"}, False, set(), id="own policy"),
        pytest.param(
            "Never",
            {"restartPolicy": "Never", "restartPolicyRules": [rule("In", 42)]},
            False,
            {42},
            id="rule for some exit codes",
        ),
        pytest.param(
            "Never",
            {"restartPolicy": "Never", "restartPolicyRules": [rule("NotIn", 0, 42)]},
            False,
            {1},
            id="rule for all other exit codes",
        ),
    ],
)
def test_restarts(pod_policy: str, container: Object, init: bool, restarted: set[int]) -> None:
    """Rules come first, then the policy of the container, then that of its pod."""
    policy = RestartPolicy.of({"spec": {"restartPolicy": pod_policy}}, container, init=init)
    assert {code for code in (0, 1, 42) if policy.restarts(code)} == restarted
