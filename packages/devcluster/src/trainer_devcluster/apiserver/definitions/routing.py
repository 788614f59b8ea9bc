"""Routing: from a URL path and a method to a resource, an object and a verb."""

from __future__ import annotations

from dataclasses import dataclass

from trainer.kube.objects import ObjectKey
from trainer.kube.resource import PODS
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition, ResourceRegistry
from trainer_devcluster.apiserver.wire import answers
from trainer_kube_testing.api_semantics import statuses

_COLLECTION_VERBS = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_OBJECT_VERBS = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_ALL_NAMESPACES_VERBS = {"GET": "list"}
_SUBRESOURCE_VERBS = {
    "status": {"GET": "get", "PUT": "update", "PATCH": "patch"},
    "scale": {"GET": "get", "PUT": "update", "PATCH": "patch"},
    "log": {"GET": "get"},
    "exec": {"GET": "get", "POST": "create"},
    "binding": {"POST": "create"},
    "eviction": {"POST": "create"},
    "token": {"POST": "create"},
    "finalize": {"PUT": "update"},
}
_UNSUPPORTED = frozenset({"attach", "ephemeralcontainers", "portforward", "proxy", "resize"})
"""Subresources of pods that people know from other clusters."""


_NOT_SERVED = frozenset(
    {
        ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
        ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"),
        ("", "persistentvolumes"), ("", "podtemplates"), ("", "replicationcontrollers"),
        ("apps", "controllerrevisions"), ("apps", "daemonsets"), ("apps", "replicasets"),
        ("apps", "statefulsets"), ("authorization.k8s.io", "localsubjectaccessreviews"), ("batch", "cronjobs"),
        ("events.k8s.io", "events"), ("networking.k8s.io", "ingressclasses"), ("networking.k8s.io", "ingresses"),
        ("storage.k8s.io", "csidrivers"), ("storage.k8s.io", "csinodes"), ("storage.k8s.io", "storageclasses"),
        ("storage.k8s.io", "volumeattachments"),
    }
)  # fmt: skip
"""Kinds of a real cluster that no training needs; they are refused by name."""


class UnknownPathError(Exception):
    """The path belongs to no group that is served."""


@dataclass(frozen=True, slots=True)
class Target:
    """The resource, object or path of a request."""

    definition: ResourceDefinition
    verb: str
    namespace: str | None = None
    """None for cluster-scoped resources and for lists over all namespaces."""
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> ObjectKey:
        """Key of the object."""
        return ObjectKey(self.namespace or "", self.name)


def resolve(registry: ResourceRegistry, method: str, path: str) -> Target:
    """The target of a request under `/api` or `/apis`.

    Raises:
        UnknownPathError: no served group and version.
        ApiError: 404 for an unknown resource or subresource, 405 for a verb that it does not have.
    """
    parts = [part for part in path.split("/") if part]
    group, version, rest = _split(parts)
    plural = rest[2] if rest[:1] == ["namespaces"] and len(rest) >= 3 else "".join(rest[:1])
    if (group, plural) in _NOT_SERVED:
        raise statuses.no_such_resource(f"the dev cluster does not serve {plural}.{group}".rstrip("."))
    if not rest or not registry.serves_group_version(group, version):
        raise UnknownPathError(path)
    namespace: str | None = None
    if rest[0] == "namespaces" and len(rest) >= 3 and registry.find(group, version, rest[2]) is not None:
        namespace, rest = rest[1], rest[2:]
    definition = registry.find(group, version, rest[0])
    if definition is None or len(rest) > 3 or (namespace is not None) > definition.resource.namespaced:
        raise statuses.no_such_resource()
    name, subresource = (rest[1] if len(rest) > 1 else ""), (rest[2] if len(rest) > 2 else "")
    if name and definition.resource.namespaced and namespace is None:
        raise statuses.no_such_resource()
    verb = _verb(definition, method, namespace, name, subresource)
    return Target(definition, verb, namespace, name, subresource)


def _split(parts: list[str]) -> tuple[str, str, list[str]]:
    if parts[:1] == ["api"] and len(parts) >= 2:
        return "", parts[1], parts[2:]
    if parts[:1] == ["apis"] and len(parts) >= 3:
        return parts[1], parts[2], parts[3:]
    return "", "", []


def _verb(definition: ResourceDefinition, method: str, namespace: str | None, name: str, subresource: str) -> str:
    if subresource:
        return _subresource_verb(definition, method, subresource)
    if name:
        verbs = _OBJECT_VERBS
    elif definition.resource.namespaced and namespace is None:
        verbs = _ALL_NAMESPACES_VERBS
    else:
        verbs = _COLLECTION_VERBS
    verb = verbs.get(method)
    if verb is None or verb not in definition.verbs:
        raise answers.method_not_allowed()
    return verb


def _subresource_verb(definition: ResourceDefinition, method: str, subresource: str) -> str:
    if subresource in _UNSUPPORTED and definition.resource == PODS:
        raise answers.method_not_allowed(f"the dev cluster does not support pods/{subresource}")
    served = set(definition.subresources)
    if definition.status_subresource:
        served.add("status")
    if definition.scale is not None:
        served.add("scale")
    if subresource not in served or subresource not in _SUBRESOURCE_VERBS:
        raise statuses.no_such_resource()
    verb = _SUBRESOURCE_VERBS[subresource].get(method)
    if verb is None:
        raise answers.method_not_allowed()
    return verb
