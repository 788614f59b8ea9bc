"""Roles and bindings as objects."""

from __future__ import annotations

from typing import Any

import pytest

from packages.devcluster.tests.apiserver.kinds.context import created, updated
from trainer.kube.objects import Object
from trainer_devcluster.apiserver.kinds.rbac import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING

GROUP = "rbac.authorization.k8s.io"
PODS: Object = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
HEALTH: Object = {"nonResourceURLs": ["/healthz"], "verbs": ["get"]}
USER: Object = {"kind": "User", "name": "bob"}
PATH_TEXT = "namespaced rules cannot apply to non-resource URLs"


def bound(*subjects: Object, **reference: Any) -> Object:
    """A binding of a ClusterRole."""
    return {"roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": "r"} | reference, "subjects": list(subjects)}


@pytest.mark.parametrize(
    ("definition", "obj", "complaints"),
    [
        pytest.param(
            ROLE,
            {"rules": [PODS, {}]},
            [
                "rules[1].verbs: Required value: verbs must contain at least one value",
                "rules[1].apiGroups: Required value: resource rules must supply at least one api group",
                "rules[1].resources: Required value: resource rules must supply at least one resource",
            ],
            id="empty rule",
        ),
        pytest.param(
            ROLE,
            {"rules": [HEALTH]},
            [f'rules[0].nonResourceURLs: Invalid value: ["/healthz"]: {PATH_TEXT}'],
            id="path in a namespace",
        ),
        pytest.param(
            CLUSTER_ROLE,
            {"rules": [PODS | HEALTH]},
            [
                (
                    'rules[0].nonResourceURLs: Invalid value: ["/healthz"]: rules cannot apply to both regular '
                    "resources and non-resource URLs"
                )
            ],
            id="both",
        ),
        pytest.param(
            CLUSTER_ROLE,
            {"aggregationRule": {}},
            [
                (
                    "aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required "
                    "if aggregationRule is non-nil"
                )
            ],
            id="aggregation of nothing",
        ),
        pytest.param(
            ROLE_BINDING,
            {},
            [
                'roleRef.kind: Unsupported value: "": supported values: "ClusterRole", "Role"',
                "roleRef.name: Required value",
            ],
            id="binding of nothing",
        ),
        pytest.param(
            CLUSTER_ROLE_BINDING,
            bound(kind="Role", apiGroup="g", name="a/b"),
            [
                f'roleRef.apiGroup: Unsupported value: "g": supported values: "{GROUP}"',
                'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
                """roleRef.name: Invalid value: "a/b": may not contain '/'""",
            ],
            id="what cannot be bound",
        ),
        pytest.param(
            ROLE_BINDING,
            bound({"kind": "Robot"}),
            [
                "subjects[0].name: Required value",
                'subjects[0].kind: Unsupported value: "Robot": supported values: "Group", "ServiceAccount", "User"',
            ],
            id="unknown subject",
        ),
        pytest.param(
            CLUSTER_ROLE_BINDING,
            bound({"kind": "ServiceAccount", "name": "a", "apiGroup": "x"}),
            [
                'subjects[0].apiGroup: Unsupported value: "x": supported values: ""',
                "subjects[0].namespace: Required value",
            ],
            id="account of no namespace",
        ),
    ],
)
def test_validation(definition: Any, obj: Object, complaints: list[str]) -> None:
    """What makes no sense is refused with the texts of the real server."""
    _, causes = created(definition.strategy, obj)
    assert list(map(str, causes)) == complaints


def test_defaults() -> None:
    """Groups are filled in, and a role says that it has no rules."""
    account = {"kind": "ServiceAccount", "name": "a", "namespace": "n", "apiGroup": ""}
    obj, _ = created(ROLE_BINDING.strategy, {"roleRef": {"kind": "Role", "name": "r"}, "subjects": [USER, account]})
    assert obj["roleRef"] == {"kind": "Role", "name": "r", "apiGroup": GROUP}
    assert obj["subjects"] == [USER | {"apiGroup": GROUP}, {"kind": "ServiceAccount", "name": "a", "namespace": "n"}]
    obj, _ = created(ROLE.strategy, {})
    assert obj["rules"] is None


def test_role_of_a_binding_is_kept() -> None:
    """Subjects may change, the role may not."""
    old, _ = created(ROLE_BINDING.strategy, bound(dict(USER)))
    assert updated(ROLE_BINDING.strategy, bound(), old) == []
    [cause] = updated(ROLE_BINDING.strategy, bound(name="other"), old)
    shown = f'{{"APIGroup":"{GROUP}","Kind":"ClusterRole","Name":"other"}}'
    assert str(cause) == f"roleRef: Invalid value: {shown}: cannot change roleRef"
