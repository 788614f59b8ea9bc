"""Our pods fit the restricted Pod Security Standard, which their namespace enforces, and go beyond it."""

from __future__ import annotations

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
