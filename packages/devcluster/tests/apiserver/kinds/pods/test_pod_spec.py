from __future__ import annotations

from typing import Any

import pytest

from trainer_devcluster.apiserver.kinds.pods.pod_spec import default_pod_spec, default_pull_policy


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
                "lifecycle": {"preStop": {"httpGet": {"port": 2}}, "stopSignal": "SIGINT"},
            }
        ],
        "volumes": [
            {"name": "v"},
            {"name": "m", "configMap": {"name": "x"}},
            {"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        ],
    }
    default_pod_spec(spec)
    [container] = spec["containers"]
    assert container["ports"] == [{"containerPort": 1, "protocol": "TCP"}]
    assert container["env"][0]["valueFrom"]["fieldRef"] == {"fieldPath": "metadata.name", "apiVersion": "v1"}
    assert container["readinessProbe"]["httpGet"] == {"port": 1, "path": "/", "scheme": "HTTP"}
    assert container["readinessProbe"]["failureThreshold"] == 3
    assert container["lifecycle"]["preStop"]["httpGet"] == {"port": 2, "path": "/", "scheme": "HTTP"}
    assert spec["volumes"] == [
        {"name": "v", "emptyDir": {}},
        {"name": "m", "configMap": {"name": "x", "defaultMode": 420}},
        {"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": {"volumeMode": "Filesystem"}}}},
    ]


def test_an_empty_text_is_absent() -> None:
    """Charts write the policies that nobody chose as empty texts."""
    chosen = {"imagePullPolicy": "", "terminationMessagePolicy": ""}
    spec: dict[str, Any] = {"dnsPolicy": "", "containers": [{"name": "a", "image": "i:1"} | chosen]}

    default_pod_spec(spec)

    assert spec["dnsPolicy"] == "ClusterFirst"
    assert spec["containers"][0]["imagePullPolicy"] == "IfNotPresent"
    assert spec["containers"][0]["terminationMessagePolicy"] == "File"


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        pytest.param("busybox", "Always", id="no tag"),
        pytest.param("busybox@sha256:0123", "IfNotPresent", id="digest"),
    ],
)
def test_pull_policy_follows_the_tag(image: str, policy: str) -> None:
    """An image that may change is always pulled."""
    assert default_pull_policy(image) == policy
