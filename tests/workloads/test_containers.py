"""Statuses of containers, and restart policies."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.kube.objects import Object
from trainer.workloads.containers import RestartPolicy, container_status, containers_of, has_ended


@pytest.mark.parametrize(
    ("policy", "phase", "state", "ended"),
    [
        pytest.param("Never", "Running", {"running": {}}, False, id="running"),
        pytest.param("Never", "Running", {"terminated": {"exitCode": 1}}, True, id="never restarted"),
        pytest.param("OnFailure", "Running", {"terminated": {"exitCode": 1}}, False, id="will be restarted"),
        pytest.param("OnFailure", "Running", {"terminated": {"exitCode": 0}}, True, id="success is not repeated"),
        pytest.param("Always", "Running", {"terminated": {"exitCode": 0}}, False, id="always restarted"),
        pytest.param("Always", "Failed", {"terminated": {"exitCode": 0}}, True, id="the pod has ended"),
        pytest.param("Never", "Pending", {"waiting": {}}, False, id="not started"),
    ],
)
def test_has_ended(policy: str, phase: str, state: dict[str, Any], ended: bool) -> None:
    """A container has ended for good when its pod has, or when its restart policy leaves it alone."""
    subject = {
        "spec": {"restartPolicy": policy, "containers": [{"name": "trainer"}]},
        "status": {"phase": phase, "containerStatuses": [{"name": "trainer", "state": state}]},
    }

    assert has_ended(subject, "trainer") == ended


@pytest.mark.parametrize(
    ("exit_code", "ended"),
    [
        pytest.param(42, False, id="a rule restarts it"),
        pytest.param(1, True, id="no rule is about this exit code"),
    ],
)
def test_restart_policy_rules(exit_code: int, ended: bool) -> None:
    """A container whose policy leaves it alone has not ended for good when one of its rules restarts it."""
    rule = {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}
    container = {"name": "trainer", "restartPolicy": "Never", "restartPolicyRules": [rule]}
    state = {"terminated": {"exitCode": exit_code}}
    subject = {
        "spec": {"restartPolicy": "Never", "containers": [container]},
        "status": {"phase": "Running", "containerStatuses": [{"name": "trainer", "state": state}]},
    }

    assert has_ended(subject, "trainer") == ended


def test_an_init_container_that_has_succeeded_has_ended() -> None:
    """An init container is done once it has succeeded, although the containers of its pod are always restarted."""
    state = {"terminated": {"exitCode": 0}}
    subject = {
        "spec": {"restartPolicy": "Always", "initContainers": [{"name": "fetch"}], "containers": [{"name": "trainer"}]},
        "status": {"phase": "Pending", "initContainerStatuses": [{"name": "fetch", "state": state}]},
    }

    assert has_ended(subject, "fetch")


@pytest.mark.parametrize(
    ("own_policy", "exit_code", "ended"),
    [
        pytest.param(None, 0, True, id="has done its work"),
        pytest.param(None, 1, True, id="the pod is not restarted"),
        pytest.param("Always", 1, False, id="sidecar"),
    ],
)
def test_init_containers(own_policy: str | None, exit_code: int, ended: bool) -> None:
    """An init container is a container as well; a sidecar has a restart policy of its own."""
    first: dict[str, Any] = {"name": "fetch"} | ({"restartPolicy": own_policy} if own_policy else {})
    state = {"terminated": {"exitCode": exit_code}}
    pod = {
        "spec": {"restartPolicy": "Never", "initContainers": [first], "containers": [{"name": "trainer"}]},
        "status": {"phase": "Pending", "initContainerStatuses": [{"name": "fetch", "state": state}]},
    }

    assert containers_of(pod) == ["fetch", "trainer"]
    assert container_status(pod, "fetch")["state"] == state
    assert container_status(pod, "trainer") == {}
    assert has_ended(pod, "fetch") == ended


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
