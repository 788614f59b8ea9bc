from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from trainer.devcluster.apiserver.kinds.pod_spec import default_pod_spec, default_pull_policy
from trainer.devcluster.apiserver.kinds.pod_spec_validation import validate_pod_spec


def test_defaults_of_a_pod_spec() -> None:
    """The fields that a real API server fills in, and no others."""
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "i"}], "serviceAccountName": "bot"}
    default_pod_spec(spec)
    assert spec == {
        "containers": [
            {
                "name": "c",
                "image": "i",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "imagePullPolicy": "Always",
            }
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "serviceAccountName": "bot",
        "serviceAccount": "bot",
    }


def test_defaults_deep_in_a_pod_spec() -> None:
    """Ports, probes, variables and volumes have defaults of their own."""
    spec: dict[str, Any] = {
        "containers": [
            {
                "name": "c",
                "image": "i",
                "ports": [{"containerPort": 1}],
                "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "readinessProbe": {"httpGet": {"port": 1}},
            }
        ],
        "volumes": [{"name": "v"}, {"name": "m", "configMap": {"name": "x"}}],
    }
    default_pod_spec(spec)
    [container] = spec["containers"]
    assert container["ports"] == [{"containerPort": 1, "protocol": "TCP"}]
    assert container["env"][0]["valueFrom"]["fieldRef"] == {"fieldPath": "metadata.name", "apiVersion": "v1"}
    assert container["readinessProbe"]["httpGet"] == {"port": 1, "path": "/", "scheme": "HTTP"}
    assert container["readinessProbe"]["failureThreshold"] == 3
    assert spec["volumes"] == [
        {"name": "v", "emptyDir": {}},
        {"name": "m", "configMap": {"name": "x", "defaultMode": 420}},
    ]


def test_an_empty_text_is_absent() -> None:
    """Charts write the policies that nobody chose as empty texts."""
    chosen = {"imagePullPolicy": "", "terminationMessagePolicy": ""}
    spec: dict[str, Any] = {"dnsPolicy": "", "containers": [{"name": "a", "image": "i:1"} | chosen]}

    default_pod_spec(spec)

    assert spec["dnsPolicy"] == "ClusterFirst"
    assert spec["containers"][0]["imagePullPolicy"] == "IfNotPresent"
    assert spec["containers"][0]["terminationMessagePolicy"] == "File"


def test_defaults_are_idempotent() -> None:
    """An update applies them again and changes nothing."""
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "i"}], "volumes": [{"name": "v"}]}
    default_pod_spec(spec)
    once = repr(spec)
    default_pod_spec(spec)
    assert repr(spec) == once


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        pytest.param("busybox", "Always", id="no tag"),
        pytest.param("busybox:latest", "Always", id="latest"),
        pytest.param("busybox:1.36", "IfNotPresent", id="tag"),
        pytest.param("localhost:5000/busybox", "Always", id="a port is no tag"),
        pytest.param("busybox@sha256:0123", "IfNotPresent", id="digest"),
    ],
)
def test_pull_policy_follows_the_tag(image: str, policy: str) -> None:
    """An image that may change is always pulled."""
    assert default_pull_policy(image) == policy


CONTAINER = {"name": "c", "image": "i"}


@pytest.mark.parametrize(
    ("spec", "messages"),
    [
        pytest.param({"containers": [CONTAINER]}, [], id="valid"),
        pytest.param({}, ["s.containers: Required value"], id="no containers"),
        pytest.param(
            {"containers": [{}]},
            ["s.containers[0].name: Required value", "s.containers[0].image: Required value"],
            id="empty container",
        ),
        pytest.param(
            {"containers": [CONTAINER, CONTAINER]}, ['s.containers[1].name: Duplicate value: "c"'], id="duplicate name"
        ),
        pytest.param(
            {"containers": [CONTAINER], "restartPolicy": "Sometimes"},
            [
                's.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "Never", "OnFailure"',
            ],
            id="restart policy",
        ),
        pytest.param(
            {"containers": [{**CONTAINER, "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]},
            ['s.containers[0].volumeMounts[0].name: Not found: "v"'],
            id="mount without volume",
        ),
        pytest.param(
            {"containers": [{**CONTAINER, "env": [{"name": "PORT", "value": 80}]}]},
            ["s.containers[0].env[0].value: Invalid value: 80: must be a string: quote the value"],
            id="number as variable",
        ),
        pytest.param(
            {"containers": [{**CONTAINER, "command": "sleep 1"}]},
            ['s.containers[0].command: Invalid value: "sleep 1": must be a list of strings: quote the values'],
            id="command as text",
        ),
        pytest.param(
            {"containers": ["c"]},
            ['s.containers: Invalid value: ["c"]: must be a list of objects'],
            id="containers as names",
        ),
    ],
)
def test_validation_names_the_field(spec: dict[str, Any], messages: list[str]) -> None:
    """Every problem is told with its path and, where it is not obvious, the remedy."""
    spec = deepcopy(spec)
    default_pod_spec(spec)
    assert [str(cause) for cause in validate_pod_spec(spec, "s")] == messages
