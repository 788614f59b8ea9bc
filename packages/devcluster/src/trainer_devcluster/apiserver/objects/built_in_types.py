"""The types of built-in kinds, from `builtin_types.json.gz`, which `hack/generate_builtin_types.py` makes."""

from __future__ import annotations

import copy
import functools
import gzip
import json
from collections.abc import Mapping
from importlib import resources
from typing import Any, Final

from trainer.kube.objects import Object
from trainer_devcluster.apiserver.objects.value_types import OBJECT_META, Schema, SchemaTyping, as_resource


def custom_resource_type(schema: Mapping[str, Any]) -> SchemaTyping:
    """The type of custom resources with this `openAPIV3Schema`; metadata is that of every object."""
    return SchemaTyping(as_resource(schema), built_in_definitions())


@functools.cache
def built_in_type(api_version: str, kind: str) -> SchemaTyping | None:
    """The type of a built-in kind; None when the data file does not have it."""
    name = definition_name(api_version, kind)
    return SchemaTyping({"$ref": name}, built_in_definitions()) if name is not None else None


@functools.cache
def object_meta() -> SchemaTyping:
    """The type of `metadata`."""
    return SchemaTyping({"$ref": OBJECT_META}, _built_in()["definitions"])


def description_of(api_version: str, kind: str, *path: str) -> str:
    """What the API documentation says about a field of a built-in kind; "" when it is not in the data file."""
    typing = built_in_type(api_version, kind)
    for name in path:
        typing = typing.field(name) if typing is not None else None
    return str(typing.schema.get("description") or "") if typing is not None else ""


def built_in_definitions() -> Mapping[str, Schema]:
    """Schemas by definition name; `$ref` values are such names. Shared: never change them."""
    definitions: Mapping[str, Schema] = _built_in()["definitions"]
    return definitions


def definition_name(api_version: str, kind: str) -> str | None:
    """The definition name of a built-in kind; None when the data file does not have it."""
    name: str | None = _built_in()["kinds"].get(f"{api_version}/{kind}")
    return name


@functools.cache
def _built_in() -> dict[str, Any]:
    packed = resources.files(__package__).joinpath("builtin_types.json.gz").read_bytes()
    document: dict[str, Any] = json.loads(gzip.decompress(packed))
    return document


_POD_SPEC: Final[Object] = {"containers": None}
_TEMPLATE: Final[Object] = {"metadata": {}, "spec": _POD_SPEC}
_EMPTY_OBJECTS: Final[dict[str, Object]] = {
    "v1/Namespace": {"spec": {}, "status": {}},
    "v1/Node": {"spec": {}, "status": {"daemonEndpoints": {"kubeletEndpoint": {}}, "nodeInfo": {}}},
    "v1/PersistentVolumeClaim": {"spec": {"resources": {}}, "status": {}},
    "v1/Pod": {"spec": _POD_SPEC, "status": {}},
    "v1/Service": {"spec": {}, "status": {"loadBalancer": {}}},
    "v1/Event": {"involvedObject": {}, "source": {}, "firstTimestamp": None, "lastTimestamp": None, "eventTime": None},
    "v1/LimitRange": {"spec": {"limits": None}},
    "v1/ResourceQuota": {"spec": {}, "status": {}},
    "apiextensions.k8s.io/v1/CustomResourceDefinition": {
        "spec": {"names": {}, "versions": None},
        "status": {"conditions": None, "acceptedNames": {}, "storedVersions": None},
    },
    "apps/v1/Deployment": {"spec": {"selector": None, "template": _TEMPLATE, "strategy": {}}, "status": {}},
    "autoscaling/v2/HorizontalPodAutoscaler": {
        "spec": {"scaleTargetRef": {"kind": "", "name": ""}, "maxReplicas": 0},
        "status": {"desiredReplicas": 0, "currentMetrics": None},
    },
    "batch/v1/Job": {"spec": {"template": _TEMPLATE}, "status": {}},
    "coordination.k8s.io/v1/Lease": {"spec": {}},
    "discovery.k8s.io/v1/EndpointSlice": {"endpoints": None, "ports": None},
    "networking.k8s.io/v1/NetworkPolicy": {"spec": {"podSelector": {}}},
    "node.k8s.io/v1/RuntimeClass": {"handler": ""},
    "policy/v1/PodDisruptionBudget": {
        "spec": {},
        "status": dict.fromkeys(("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"), 0),
    },
    "rbac.authorization.k8s.io/v1/Role": {"rules": None},
    "rbac.authorization.k8s.io/v1/ClusterRole": {"rules": None},
    "rbac.authorization.k8s.io/v1/RoleBinding": {"roleRef": {}},
    "rbac.authorization.k8s.io/v1/ClusterRoleBinding": {"roleRef": {}},
    "scheduling.k8s.io/v1/PriorityClass": {"value": 0},
}


def empty_object(obj: Object) -> Object:
    """The empty object of the kind of another one."""
    kind = f"{obj.get('apiVersion')}/{obj.get('kind')}"
    return {"metadata": {}, **copy.deepcopy(_EMPTY_OBJECTS.get(kind, {}))}
