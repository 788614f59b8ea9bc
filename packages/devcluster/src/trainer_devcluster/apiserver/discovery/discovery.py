"""Discovery: which groups, versions and resources there are.

Two forms: the legacy documents, one per group and version, and the aggregated document of apidiscovery.k8s.io/v2
(KEP-3352).
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from trainer.kube.objects import Object
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition

# The order in which the real server lists the verbs of custom resources; clients do not care.
_CUSTOM_VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_STATUS_VERBS: Final = ("get", "patch", "update")
_VERSION: Final = re.compile(r"^v(\d+)(?:(alpha|beta)(\d+))?$")
_STABILITY: Final = {"": 2, "beta": 1, "alpha": 0}


class _Subresource(NamedTuple):
    kind: str
    verbs: tuple[str, ...]
    group: str = ""
    """Group and version of the kind, where they are not those of the parent."""
    version: str = ""


_SCALE: Final = _Subresource("Scale", _STATUS_VERBS, "autoscaling", "v1")
_SUBRESOURCES: Final = {
    "binding": _Subresource("Binding", ("create",)),
    "eviction": _Subresource("Eviction", ("create",), "policy", "v1"),
    "exec": _Subresource("PodExecOptions", ("create", "get")),
    "finalize": _Subresource("Namespace", ("update",)),
    "token": _Subresource("TokenRequest", ("create",), "authentication.k8s.io", "v1"),
}


def core_versions(server_address: str) -> Object:
    """The document of `/api`.

    Args:
        server_address: host and port under which clients reach the server.
    """
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}],
    }


def group_list(definitions: Iterable[ResourceDefinition]) -> Object:
    """The document of `/apis`: every named group."""
    groups = [_group(group, versions) for group, versions in _groups(definitions).items() if group]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(definitions: Iterable[ResourceDefinition], name: str) -> Object | None:
    """The document of `/apis/<group>`; None when nothing of the group is served."""
    versions = _groups(definitions).get(name)
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)} if versions and name else None


def resource_list(definitions: Iterable[ResourceDefinition], group: str, version: str) -> Object | None:
    """The document of `/api/v1` or `/apis/<group>/<version>`; None when nothing of it is served."""
    served = [d for d in definitions if (d.resource.group, d.resource.version) == (group, version)]
    if not served:
        return None
    entries = [entry for definition in served for entry in _legacy_entries(definition)]
    api_version = served[0].resource.api_version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": entries}


def aggregated(definitions: Sequence[ResourceDefinition], *, core: bool) -> Object:
    """The aggregated document of `/api` (the core group) or `/apis` (all others)."""
    items = []
    for name, versions in _groups(definitions).items():
        if core != (name == ""):
            continue
        described = [
            {
                "version": version,
                "resources": [
                    _aggregated_entry(d)
                    for d in definitions
                    if (d.resource.group, d.resource.version) == (name, version)
                ],
                "freshness": "Current",
            }
            for version in versions
        ]
        items.append({"metadata": {"name": name, "creationTimestamp": None} if name else {}, "versions": described})
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def preference(version: str) -> tuple[int, int, int, str]:
    """A sort key that brings versions into the order of preference: v2, v1, v1beta1, v1alpha1, anything else."""
    match = _VERSION.match(version)
    if match is None:
        return 0, 0, 0, version
    return -_STABILITY[match[2] or ""] - 1, -int(match[1]), -int(match[3] or 0), version


def _groups(definitions: Iterable[ResourceDefinition]) -> dict[str, list[str]]:
    groups: dict[str, set[str]] = {}
    for definition in definitions:
        groups.setdefault(definition.resource.group, set()).add(definition.resource.version)
    return {name: sorted(versions, key=preference) for name, versions in groups.items()}


def _group(name: str, versions: list[str]) -> Object:
    entries = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": entries, "preferredVersion": entries[0]}


def _verbs(definition: ResourceDefinition) -> list[str]:
    if definition.is_custom:
        return [verb for verb in _CUSTOM_VERBS if verb in definition.verbs]
    return list(definition.verbs)


def _subresources(definition: ResourceDefinition) -> dict[str, _Subresource]:
    kind = definition.resource.kind
    found = {name: _SUBRESOURCES.get(name, _Subresource(kind, ("get",))) for name in definition.subresources}
    if definition.status_subresource:
        found["status"] = _Subresource(kind, _STATUS_VERBS)
    if definition.scale is not None:
        found["scale"] = _SCALE
    return found


def _legacy_entries(definition: ResourceDefinition) -> list[Object]:
    resource = definition.resource
    entry: dict[str, Any] = {
        "name": resource.plural,
        "singularName": definition.singular or resource.kind.lower(),
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _verbs(definition),
    }
    if definition.short_names:
        entry["shortNames"] = list(definition.short_names)
    if definition.categories:
        entry["categories"] = list(definition.categories)
    if definition.stored:
        entry["storageVersionHash"] = _storage_version_hash(definition)
    entries = [entry]
    for name, subresource in _subresources(definition).items():
        nested: dict[str, Any] = {
            "name": f"{resource.plural}/{name}",
            "singularName": "",
            "namespaced": resource.namespaced,
        }
        if subresource.version:
            nested |= {"group": subresource.group, "version": subresource.version}
        entries.append(nested | {"kind": subresource.kind, "verbs": list(subresource.verbs)})
    return entries


def _aggregated_entry(definition: ResourceDefinition) -> Object:
    resource = definition.resource
    entry: dict[str, Any] = {
        "resource": resource.plural,
        "responseKind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": definition.singular or resource.kind.lower(),
        "verbs": _verbs(definition),
    }
    if definition.short_names:
        entry["shortNames"] = list(definition.short_names)
    if definition.categories:
        entry["categories"] = list(definition.categories)
    nested = [
        {
            "subresource": name,
            "responseKind": {
                "group": subresource.group if subresource.version else resource.group,
                "version": subresource.version or resource.version,
                "kind": subresource.kind,
            },
            "verbs": list(subresource.verbs),
        }
        for name, subresource in _subresources(definition).items()
    ]
    return entry | ({"subresources": nested} if nested else {})


def _storage_version_hash(definition: ResourceDefinition) -> str:
    resource = definition.resource
    stored = resource.api_version if definition.versions is None else definition.versions.storage
    # The core group is the empty one.
    text = f"{stored if '/' in stored else f'/{stored}'}/{resource.kind}"
    return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()
