from __future__ import annotations

from typing import Any

import pytest

from trainer_devcluster.apiserver.kinds.pods.pod_spec import default_pod_spec, default_pull_policy


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
