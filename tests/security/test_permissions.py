"""What the roles of config/ can never grant; that they grant no more than is used is shown by e2e/test_rbac.py."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml

from trainer.kube.objects import Object, name_of

CONFIG = Path(__file__).parents[2] / "config"
_OPTIONAL = {"roles", "v1", "dashboard-impersonation"}
READING = {"get", "list", "watch"}
WRITING = {"create", "update", "patch", "delete", "deletecollection"}


@cache
def objects(kind: str) -> list[Object]:
    """All objects of a kind that come with the manifests, without the roles of v1alpha1 for people.

    Neither are those among them that nobody has to apply: tests/config/test_v1_roles.py is about those of config/v1,
    and tests/config/test_web_dashboard.py about the right to act as others.
    """
    texts = [
        file.read_text() for file in sorted(CONFIG.rglob("*.yaml")) if not _OPTIONAL & {*file.relative_to(CONFIG).parts}
    ]
    found = [obj for text in texts if f"\nkind: {kind}\n" in text for obj in yaml.load_all(text, yaml.CSafeLoader)]
    return [obj for obj in found if obj and obj.get("kind") == kind]


def rules(kind: str) -> Iterator[Object]:
    """The rules of all Roles or ClusterRoles."""
    for role in objects(kind):
        yield from role["rules"]


def granted(kind: str, resource: str, *, group: str = "") -> set[str]:
    """The verbs on a resource, whatever its names."""
    return {
        verb
        for rule in rules(kind)
        if resource in rule.get("resources", []) and group in rule["apiGroups"]
        for verb in rule["verbs"]
    }


def test_nothing_is_granted_wholesale() -> None:
    """No group, resource or verb is `*`, which would grant what nobody has thought of."""
    found = [rule for kind in ("Role", "ClusterRole") for rule in rules(kind)]
    assert found
    for rule in found:
        assert "*" not in [*rule.get("apiGroups", []), *rule.get("resources", []), *rule["verbs"]], rule


def test_secrets_of_others() -> None:
    """No Secret of any namespace can be read; in that of the manager only its own, by name."""
    assert granted("ClusterRole", "secrets") == {"create"}
    [rule] = [rule for rule in rules("Role") if "secrets" in rule["resources"]]
    assert rule["resourceNames"] == ["trainer-webhook-certificates"]
    assert set(rule["verbs"]) <= {"get", "update"}


@pytest.mark.parametrize(
    ("resource", "group"),
    [
        pytest.param("pods", "", id="pods"),
        pytest.param("jobs", "batch", id="jobs"),
        pytest.param("trainjobs", "trainer.kubeflow.org", id="trainjobs"),
        pytest.param("optimizationjobs", "trainer.kubeflow.org", id="optimizationjobs"),
        pytest.param("trainingruntimes", "trainer.kubeflow.org", id="runtimes"),
        pytest.param("roles", "rbac.authorization.k8s.io", id="roles"),
        pytest.param("rolebindings", "rbac.authorization.k8s.io", id="role-bindings"),
        pytest.param("clusterroles", "rbac.authorization.k8s.io", id="cluster-roles"),
        pytest.param("clusterrolebindings", "rbac.authorization.k8s.io", id="cluster-role-bindings"),
        pytest.param("nodes", "", id="nodes"),
        pytest.param("serviceaccounts", "", id="service-accounts"),
        pytest.param("customresourcedefinitions", "apiextensions.k8s.io", id="definitions"),
    ],
)
def test_what_the_manager_never_writes(resource: str, group: str) -> None:
    """It makes no pods itself and gives nobody rights; it makes and suspends trials, and deletes what is over."""
    found = granted("ClusterRole", resource, group=group) | granted("Role", resource, group=group)
    written = {"trainjobs": {"create", "patch", "delete"}, "optimizationjobs": {"delete"}}
    assert found & WRITING == written.get(resource, set())


@pytest.mark.parametrize(
    "resource", ["pods/exec", "pods/attach", "pods/portforward", "pods/ephemeralcontainers", "serviceaccounts/token"]
)
def test_no_way_into_pods(resource: str) -> None:
    """Not even where a role would have to name a subresource."""
    assert granted("ClusterRole", resource) | granted("Role", resource) == set()


def test_no_way_to_become_another() -> None:
    """Nobody is impersonated, and no role is escalated or bound."""
    verbs = {verb for kind in ("Role", "ClusterRole") for rule in rules(kind) for verb in rule["verbs"]}
    assert verbs <= READING | WRITING


def test_webhook_configurations() -> None:
    """Only its own two can be changed, so that it cannot stand between the API server and anything else."""
    for resource in ("validatingwebhookconfigurations", "mutatingwebhookconfigurations"):
        found = [rule for rule in rules("ClusterRole") if resource in rule.get("resources", [])]
        assert found
        for rule in found:
            assert [name for name in rule["resourceNames"] if not name.endswith(".trainer.kubeflow.org")] == []


def test_pods_of_the_manager() -> None:
    """They need no privilege: no root, no capability, no file system that can be written to but for memory."""
    found = [*objects("Deployment"), *objects("Job")]
    assert {name_of(obj) for obj in found} >= {"trainer-controller-manager"}
    for obj in found:
        pod = obj["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] > 0
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
        assert not [volume for volume in pod.get("volumes", []) if "hostPath" in volume]
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
