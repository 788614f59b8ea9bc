"""Empty objects: what Go writes for an object of a built-in kind in which nothing is set.

The first write of an object does not come to own what stands in these already.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from trainer.kube.objects import Object

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
