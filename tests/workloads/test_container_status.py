"""What the kubelet says about containers."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.workloads.container_status import container_status, containers_of, has_ended


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
