"""The roles and bindings that every cluster starts with.

Source: Kubernetes documentation, "Using RBAC Authorization", default roles and role bindings. Roles of components that
do not run here (nodes, the certificate signer, controllers) are left out, and so are resources that are not served.
"""

from __future__ import annotations

from typing import Final

from trainer.kube.objects import Object
from trainer.kube.resource import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLES, Resource
from trainer_devcluster.apiserver.authentication.user import AUTHENTICATED, MASTERS, UNAUTHENTICATED
from trainer_devcluster.apiserver.authorization.rules import EVERYTHING, PolicyRule

AUTOUPDATE: Final = "rbac.authorization.kubernetes.io/autoupdate"
"""Annotation: unless it is "false", what is missing is put back at the start."""
_BOOTSTRAPPING: Final = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_READ: Final = "get list watch"
_WRITE: Final = "create delete deletecollection patch update"
_READ_WRITE: Final = "create delete deletecollection get list patch update watch"
_HEALTH: Final = "/healthz /livez /readyz"


def _on(group: str, verbs: str, resources: str, names: str = "") -> PolicyRule:
    return PolicyRule(tuple(verbs.split()), (group,), tuple(resources.split()), tuple(names.split()))


def _paths(paths: str) -> PolicyRule:
    return PolicyRule(("get",), paths=tuple(paths.split()))


_VIEW: Final = (
    _on(
        "",
        _READ,
        "configmaps endpoints events limitranges namespaces namespaces/status persistentvolumeclaims "
        "persistentvolumeclaims/status pods pods/log pods/status resourcequotas resourcequotas/status serviceaccounts "
        "services services/status",
    ),
    _on("discovery.k8s.io", _READ, "endpointslices"),
    _on("apps", _READ, "deployments deployments/status"),
    _on("autoscaling", _READ, "horizontalpodautoscalers horizontalpodautoscalers/status"),
    _on("batch", _READ, "jobs jobs/status"),
    _on("policy", _READ, "poddisruptionbudgets poddisruptionbudgets/status"),
    _on("networking.k8s.io", _READ, "networkpolicies"),
)
_EDIT: Final = (
    _on("", _READ, "pods/exec secrets"),
    _on("", "impersonate", "serviceaccounts"),
    _on("", _WRITE, "configmaps events persistentvolumeclaims pods pods/exec secrets serviceaccounts services"),
    _on("", "create", "pods/eviction serviceaccounts/token"),
    _on("apps", _WRITE, "deployments"),
    _on("autoscaling", _WRITE, "horizontalpodautoscalers"),
    _on("batch", _WRITE, "jobs"),
    _on("policy", _WRITE, "poddisruptionbudgets"),
    _on("networking.k8s.io", _WRITE, "networkpolicies"),
    _on("coordination.k8s.io", _READ_WRITE, "leases"),
)
_ADMIN: Final = (_on(ROLES.group, _READ_WRITE, "rolebindings roles"),)
_ROLES: Final[dict[str, tuple[PolicyRule, ...]]] = {
    "cluster-admin": EVERYTHING,
    "system:discovery": (_paths(f"/api /api/* /apis /apis/* {_HEALTH} /openapi /openapi/* /version /version/"),),
    "system:basic-user": (
        _on("authorization.k8s.io", "create", "selfsubjectaccessreviews selfsubjectrulesreviews"),
        _on("authentication.k8s.io", "create", "selfsubjectreviews"),
    ),
    "system:public-info-viewer": (_paths(f"{_HEALTH} /version /version/"),),
    "system:monitoring": (_paths("/healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/*"),),
    "system:auth-delegator": (
        _on("authentication.k8s.io", "create", "tokenreviews"),
        _on("authorization.k8s.io", "create", "subjectaccessreviews"),
    ),
}
_GIVEN_TO: Final[dict[str, tuple[str, ...]]] = {
    "cluster-admin": (MASTERS,),
    "system:basic-user": (AUTHENTICATED,),
    "system:discovery": (AUTHENTICATED,),
    "system:monitoring": ("system:monitoring",),
    "system:public-info-viewer": (AUTHENTICATED, UNAUTHENTICATED),
}
"""Groups that have a role everywhere, by a binding of the same name."""
_PARTS: Final = {"admin": _ADMIN, "edit": _EDIT, "view": _VIEW}
"""The rules that each role for users of a namespace adds to the next smaller one."""
_PART_OF: Final = {"edit": "admin", "view": "edit"}


def bootstrap_objects() -> list[Object]:
    """All of them, roles first; the rules of `admin`, `edit` and `view` are for the aggregation controller to fill."""
    roles = [_role(name, rules) for name, rules in _ROLES.items()]
    for name, rules in _PARTS.items():
        larger = _PART_OF.get(name)
        whole = _role(name, (), {_aggregation_label(larger): "true"} if larger else {})
        selector = {"matchLabels": {_aggregation_label(name): "true"}}
        whole["aggregationRule"] = {"clusterRoleSelectors": [selector]}
        roles += [whole, _role(f"system:aggregate-to-{name}", rules, {_aggregation_label(name): "true"})]
    return roles + [_binding(name, groups) for name, groups in _GIVEN_TO.items()]


def _aggregation_label(name: str) -> str:
    return f"{ROLES.group}/aggregate-to-{name}"


def _role(name: str, rules: tuple[PolicyRule, ...], labels: dict[str, str] | None = None) -> Object:
    return _object(CLUSTER_ROLES, name, labels) | {"rules": [rule.to_object() for rule in rules]}


def _binding(name: str, groups: tuple[str, ...]) -> Object:
    return _object(CLUSTER_ROLE_BINDINGS, name) | {
        "roleRef": {"apiGroup": ROLES.group, "kind": CLUSTER_ROLES.kind, "name": name},
        "subjects": [{"apiGroup": ROLES.group, "kind": "Group", "name": group} for group in groups],
    }


def _object(resource: Resource, name: str, labels: dict[str, str] | None = None) -> Object:
    metadata = {"name": name, "labels": _BOOTSTRAPPING | (labels or {}), "annotations": {AUTOUPDATE: "true"}}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
