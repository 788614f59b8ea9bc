"""Our pods fit the restricted Pod Security Standard, which their namespace enforces, and go beyond it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tests.config.kustomized import of_kind, pod_templates, rendered
from tests.config.pod_security import violations
from trainer.kube.objects import Object, labels_of


def pods() -> list[Object]:
    """Specs of all pods that config/default leads to."""
    return [template["spec"] for _, template in pod_templates(rendered("default"))]


def test_the_namespace_is_restricted() -> None:
    """The namespace enforces the standard, and warns and audits likewise."""
    (namespace,) = of_kind(rendered("default"), "Namespace")
    modes = {key: value for key, value in labels_of(namespace).items() if key.startswith("pod-security.kubernetes.io/")}
    assert modes == {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}


@pytest.mark.parametrize("number", [pytest.param(0, id="manager"), pytest.param(1, id="runtimes")])
def test_restricted(number: int) -> None:
    """The namespace takes the pods; they run as a user with a number, and write nowhere but where it is mounted."""
    pod = pods()[number]
    assert violations(pod) == []
    assert pod["securityContext"]["runAsUser"] >= 10000
    assert pod["securityContext"]["runAsGroup"] >= 10000
    assert pod["automountServiceAccountToken"] is True
    for container in pod["containers"]:
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        pytest.param(("hostNetwork",), True, "spec.hostNetwork", id="host-network"),
        pytest.param(("volumes", 0), {"name": "x", "hostPath": {"path": "/"}}, "spec.volumes[0]", id="host-path"),
        pytest.param(
            ("containers", 0, "securityContext"),
            {},
            "spec.containers[0].securityContext.allowPrivilegeEscalation",
            id="nothing-said",
        ),
        pytest.param(
            ("containers", 0, "securityContext", "capabilities"),
            {"drop": ["ALL"], "add": ["SYS_ADMIN"]},
            "spec.containers[0].securityContext.capabilities",
            id="capability",
        ),
        pytest.param(
            ("securityContext",), {}, "spec.containers[0].securityContext.runAsNonRoot", id="user-of-the-image"
        ),
        pytest.param(("securityContext", "runAsUser"), 0, "spec.securityContext.runAsUser", id="root"),
        pytest.param(
            ("securityContext", "seccompProfile", "type"),
            "Unconfined",
            "spec.containers[0].securityContext.seccompProfile",
            id="seccomp",
        ),
    ],
)
def test_what_is_not_restricted(path: tuple[str | int, ...], value: object, field: str) -> None:
    """The check notices what the standard forbids."""
    pod = deepcopy(pods()[0])
    parent: Any = pod
    for step in path[:-1]:
        parent = parent[step]
    parent[path[-1]] = value

    assert field in violations(pod)
