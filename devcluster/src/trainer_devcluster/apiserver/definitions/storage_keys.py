"""Storage keys: where the real server keeps an object in etcd, which some of its messages tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from trainer.kube.objects import ObjectKey
    from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition

# Prefixes that are older than the names of their resources, or that keep two groups apart.
_PREFIXES: Final = {
    ("", "endpoints"): "services/endpoints",
    ("", "nodes"): "minions",
    ("", "services"): "services/specs",
    ("apiextensions.k8s.io", "customresourcedefinitions"): "apiextensions.k8s.io/customresourcedefinitions",
    ("networking.k8s.io", "ingresses"): "ingress",
}


def storage_key(definition: ResourceDefinition, key: ObjectKey) -> str:
    """The key, such as `/registry/configmaps/default/settings`."""
    resource = definition.resource
    prefix = _PREFIXES.get((resource.group, resource.plural), resource.plural)
    if definition.is_custom:
        prefix = f"{resource.group}/{resource.plural}"
    return "/".join(filter(None, ("/registry", prefix, key.namespace, key.name)))
