"""Kinds that are stored as they come: other components give them meaning, or nothing on a laptop does."""

from __future__ import annotations

from trainer.devcluster.apiserver.admission.endpoints import ENDPOINT_SLICES
from trainer.devcluster.apiserver.admission.endpoints import ENDPOINTS as ENDPOINTS_RESOURCE
from trainer.devcluster.apiserver.definitions import NameRule, ResourceDefinition
from trainer.devcluster.apiserver.strategy import StoreOnlyStrategy
from trainer.kube.resource import LEASES, LIMIT_RANGES, NODES, RUNTIME_CLASSES, SERVICE_ACCOUNTS, Resource

_RBAC = "rbac.authorization.k8s.io"
_STORE = StoreOnlyStrategy()

NODE = ResourceDefinition(
    NODES, _STORE, singular="node", short_names=("no",), status_subresource=True, generation=False
)
SERVICE_ACCOUNT = ResourceDefinition(
    SERVICE_ACCOUNTS, _STORE, singular="serviceaccount", short_names=("sa",), generation=False
)
ENDPOINTS = ResourceDefinition(ENDPOINTS_RESOURCE, _STORE, singular="endpoints", short_names=("ep",), generation=False)
ENDPOINT_SLICE = ResourceDefinition(ENDPOINT_SLICES, _STORE, singular="endpointslice")
LEASE = ResourceDefinition(LEASES, _STORE, singular="lease", generation=False)
LIMIT_RANGE = ResourceDefinition(
    LIMIT_RANGES,
    _STORE,
    singular="limitrange",
    short_names=("limits",),
    generation=False,
)
PRIORITY_CLASS = ResourceDefinition(
    Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False),
    _STORE,
    singular="priorityclass",
    short_names=("pc",),
)
RUNTIME_CLASS = ResourceDefinition(
    RUNTIME_CLASSES,
    _STORE,
    singular="runtimeclass",
    generation=False,
)


def _access_rule(plural: str, kind: str, *, namespaced: bool) -> ResourceDefinition:
    return ResourceDefinition(
        Resource(_RBAC, "v1", plural, kind, namespaced=namespaced),
        _STORE,
        singular=kind.lower(),
        generation=False,
        name_rule=NameRule.PATH_SEGMENT,
    )


ROLE = _access_rule("roles", "Role", namespaced=True)
ROLE_BINDING = _access_rule("rolebindings", "RoleBinding", namespaced=True)
CLUSTER_ROLE = _access_rule("clusterroles", "ClusterRole", namespaced=False)
CLUSTER_ROLE_BINDING = _access_rule("clusterrolebindings", "ClusterRoleBinding", namespaced=False)
