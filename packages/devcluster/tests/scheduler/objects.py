"""Pods and nodes as schedulers see them."""

from __future__ import annotations

from typing import Any

from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.objects import Object
from trainer_devcluster.scheduler.candidate import Candidate

ALLOCATABLE = {"cpu": "4", "memory": "8Gi", "pods": "110", "nvidia.com/gpu": "2"}


def make_node(*, ready: bool = True, **spec: Any) -> Object:
    """The only node; keyword arguments become fields of its spec."""
    labels = {"kubernetes.io/hostname": "laptop", "cores": "4"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "laptop", "labels": labels},
        "spec": spec,
        "status": {
            "capacity": dict(ALLOCATABLE),
            "allocatable": dict(ALLOCATABLE),
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def make_pod(
    name: str = "pod",
    requests: Object | None = None,
    *,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    created: str = "2026-01-01T00:00:00Z",
    **spec: Any,
) -> Object:
    """A pod without a node; keyword arguments become fields of its spec."""
    container = {"name": "main", "image": "example", "resources": {"requests": requests or {}}}
    metadata: Object = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "creationTimestamp": created}
    metadata |= {"labels": labels or {}, "annotations": annotations or {}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], "schedulerName": "default-scheduler", "restartPolicy": "Never"} | spec,
        "status": {"phase": "Pending"},
    }


def candidate(*arguments: Any, **fields: Any) -> Candidate:
    """What the scheduler knows of such a pod."""
    return Candidate.of(CachedObject.of(make_pod(*arguments, **fields)))
