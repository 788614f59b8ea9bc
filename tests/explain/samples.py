"""Objects of a TrainJob as a real API server has them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from trainer.explain import Explanation, Snapshot, explain
from trainer.kube.objects import Object

NOW = datetime(2026, 1, 1, 1, 0, 0, tzinfo=UTC)
MADE = "2026-01-01T00:58:00Z"
GPU = "nvidia.com/gpu"


def condition(kind: str, status: str = "True", reason: str = "Because", message: str = "", **fields: str) -> Object:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": MADE} | fields


CREATED = condition("Created", reason="JobsCreationSucceeded", message="Succeeded to create Jobs")


def train_job(*conditions: Object, state: str = "Created", metadata: Object | None = None, **spec: Any) -> Object:
    """One whose Jobs have been created."""
    own = {"name": "demo", "namespace": "default", "uid": "uid-of-demo", "creationTimestamp": MADE}
    created = [] if any(each["type"] == "Created" for each in conditions) else [CREATED]
    return {
        "apiVersion": "trainer.kubeflow.org/v2alpha1",
        "kind": "TrainJob",
        "metadata": own | (metadata or {}),
        "spec": {"runtimeRef": {"name": "plain", "kind": "ClusterTrainingRuntime"}} | spec,
        "status": {"state": state, "conditions": [*created, *conditions]},
    }


def jobset(
    *, nodes: int = 2, ready: int = 0, suspend: bool = False, metadata: Object | None = None, **pod: Any
) -> Object:
    version = "trainer.kubeflow.org/v2alpha1"
    owner = {"apiVersion": version, "kind": "TrainJob", "name": "demo", "uid": "uid-of-demo", "controller": True}
    own = {"name": "demo", "namespace": "default", "uid": "uid-of-set", "creationTimestamp": MADE}
    template = {"spec": {"containers": [{"name": "trainer"}]} | pod}
    job = {"parallelism": nodes, "completions": nodes, "template": template}
    count = {"name": "node", "ready": ready, "active": 1, "succeeded": 0, "failed": 0, "suspended": 0}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": own
        | {"ownerReferences": [owner | {"apiVersion": "trainer.kubeflow.org/v2alpha1"}]}
        | (metadata or {}),
        "spec": {"suspend": suspend, "replicatedJobs": [{"name": "node", "replicas": 1, "template": {"spec": job}}]},
        "status": {"replicatedJobsStatus": [count], "restarts": 0},
    }


JOB: Object = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {
        "name": "demo-node-0",
        "namespace": "default",
        "uid": "uid-of-job",
        "labels": {"jobset.sigs.k8s.io/jobset-name": "demo", "jobset.sigs.k8s.io/replicatedjob-name": "node"},
        "ownerReferences": [
            {
                "apiVersion": "jobset.x-k8s.io/v1alpha2",
                "kind": "JobSet",
                "name": "demo",
                "uid": "uid-of-set",
                "controller": True,
            }
        ],
    },
}


def pod(index: int = 0, *, metadata: Object | None = None, spec: Object | None = None, **status: Any) -> Object:
    """A pod of a node."""
    labels = {
        "jobset.sigs.k8s.io/jobset-name": "demo",
        "jobset.sigs.k8s.io/replicatedjob-name": "node",
        "jobset.sigs.k8s.io/job-index": "0",
        "batch.kubernetes.io/job-completion-index": str(index),
    }
    further = metadata or {}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "demo-node-0", "uid": "uid-of-job", "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"demo-node-0-{index}-abcde",
            "namespace": "default",
            "uid": f"uid-of-pod-{index}",
            "creationTimestamp": MADE,
            "ownerReferences": [owner],
            **further,
            "labels": labels | further.get("labels", {}),
        },
        "spec": {"nodeName": "a", "containers": [{"name": "trainer"}]} | (spec or {}),
        "status": {"phase": "Pending"} | status,
    }


def container(state: Object, *, last: Object | None = None, ready: bool = False, restarts: int = 0) -> list[Object]:
    status = {"name": "trainer", "ready": ready, "restartCount": restarts, "state": state}
    return [status | ({"lastState": last} if last else {})]


def running(index: int = 0, *, ready: bool = True) -> Object:
    return pod(index, phase="Running", containerStatuses=container({"running": {"startedAt": MADE}}, ready=ready))


def lost(index: int = 0, *, seconds: int | None = 300, metadata: Object | None = None) -> Object:
    """A pod that ran on a node that is not ready any more, which it tolerates for so long."""
    conditions = [{"type": "Ready", "status": "False", "lastTransitionTime": MADE}, condition("ContainersReady")]
    limit = {} if seconds is None else {"tolerationSeconds": seconds}
    keys = [f"node.kubernetes.io/{name}" for name in ("not-ready", "unreachable")]
    tolerations = [{"key": key, "operator": "Exists", "effect": "NoExecute", **limit} for key in keys]
    status = running(index)["status"] | {"conditions": conditions}
    return pod(index, spec={"tolerations": tolerations}, metadata=metadata, **status)


def waiting(reason: str, message: str, index: int = 0) -> Object:
    return pod(index, containerStatuses=container({"waiting": {"reason": reason, "message": message}}))


def unscheduled(
    message: str, index: int = 0, *, reason: str = "Unschedulable", spec: Object | None = None, **fields: Any
) -> Object:
    said = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    return pod(index, spec={"nodeName": None} | (spec or {}), conditions=[said], **fields)


def event(kind: str, name: str, uid: str, reason: str, message: str, type: str = "Warning") -> Object:  # noqa: A002
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.{reason}".lower(), "namespace": "default"},
        "involvedObject": {"kind": kind, "name": name, "namespace": "default", "uid": uid},
        "type": type,
        "reason": reason,
        "message": message,
        "lastTimestamp": "2026-01-01T00:59:00Z",
    }


def node(
    name: str = "a",
    *,
    labels: dict[str, str] | None = None,
    taints: list[Object] | None = None,
    ready: Object | None = None,
    **amounts: str,
) -> Object:
    allocatable = {"cpu": "8", "memory": "32Gi", "pods": "110"} | {
        key.replace("gpu", GPU): value for key, value in amounts.items()
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"taints": taints} if taints else {},
        "status": {"allocatable": allocatable, "conditions": [ready] if ready else []},
    }


def answer(job: Object, *objects: Object, **fields: Any) -> Explanation:
    return explain(Snapshot(job, NOW, objects, **fields))
