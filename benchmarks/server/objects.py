"""Canned objects: encoded once, with gaps for the parts that change with every event.

A pod weighs about 8 KB, of which managedFields is a little less than half, as with a training pod on a real cluster; a
ConfigMap about 1 KB. Fields come in the order of a real API server (that of the Go structs).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from benchmarks.server.field_ownership import managed_by
from trainer.kube import Object

SENT_AT = "benchmark.example.com/sent-at"
"""Annotation with CLOCK_MONOTONIC in nanoseconds at which the server put the event on the wire.

Linux has one such clock for all processes, so a client on the same machine may subtract it from its own.
"""

NAMESPACES = 20

_VERSION, _STAMP = "<resource version>", "<moment>"
_CREATED = "2026-01-05T08:15:30Z"


@dataclass(frozen=True, slots=True)
class CannedObject:
    """An object as JSON in three pieces: resource version and moment go between them."""

    head: bytes
    middle: bytes
    tail: bytes

    def encode(self, resource_version: int, moment: int) -> bytes:
        """The object as it is in a list: without apiVersion and kind, as items of built-in lists are."""
        return b"%b%d%b%d%b" % (self.head, resource_version, self.middle, moment, self.tail)


def can(number: int, build: Callable[[int], Object]) -> CannedObject:
    """Encode the object that `build` makes for this number."""
    head, _, rest = msgspec.json.encode(build(number)).partition(_VERSION.encode())
    middle, _, tail = rest.partition(_STAMP.encode())
    return CannedObject(head, middle, tail)


def pod(number: int) -> Object:
    """A running training pod of a Job."""
    name = f"train-{number:06}-node-0-0-x7k2p"
    labels = _labels(name, number)
    owner = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": name.rsplit("-", 2)[0],
        "uid": _uid("job", number),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    spec, status = _pod_spec(number), _pod_status(number)
    managed = [
        managed_by(
            "kube-controller-manager",
            {"metadata": {"labels": labels, "ownerReferences": [owner]}, "spec": spec},
            time=_CREATED,
        ),
        managed_by("kubelet", {"status": status}, time=_CREATED, subresource="status"),
    ]
    metadata = _metadata(name, number, labels) | {"ownerReferences": [owner], "managedFields": managed}
    return {"metadata": metadata, "spec": spec, "status": status}


def config_map(number: int) -> Object:
    """Settings of a small service."""
    name = f"settings-{number:06}"
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/managed-by": "platform"}
    data = {f"setting-{index}": f"value {index} of {name} for the service" for index in range(6)}
    managed = [managed_by("kubectl", {"metadata": {"labels": labels}, "data": data}, time=_CREATED)]
    return {"metadata": _metadata(name, number, labels) | {"managedFields": managed}, "data": data}


def _metadata(name: str, number: int, labels: Mapping[str, str]) -> Object:
    return {
        "name": name,
        "namespace": f"team-{number % NAMESPACES:02}",
        "uid": _uid("object", number),
        "resourceVersion": _VERSION,
        "generation": 1,
        "creationTimestamp": _CREATED,
        "labels": labels,
        "annotations": {SENT_AT: _STAMP},
    }


def _uid(kind: str, number: int) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{kind} {number}"))


def _labels(name: str, number: int) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "train",
        "batch.kubernetes.io/job-completion-index": "0",
        "batch.kubernetes.io/job-name": name.rsplit("-", 2)[0],
        "jobset.sigs.k8s.io/job-index": "0",
        "jobset.sigs.k8s.io/jobset-name": f"train-{number:06}",
        "jobset.sigs.k8s.io/replicatedjob-name": "node",
        "jobset.sigs.k8s.io/restart-attempt": "0",
        "trainer.kubeflow.org/trainjob-ancestor-step": "trainer",
    }


def _pod_spec(number: int) -> Object:
    return {
        "volumes": [
            {"name": "workspace", "persistentVolumeClaim": {"claimName": f"workspace-{number:06}"}},
            {"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}},
        ],
        "containers": [_container("trainer", number), _container("progress", number)],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default",
        "nodeName": f"gpu-{number % 500:04}.example.com",
        "hostname": f"train-{number:06}-node-0-0",
        "subdomain": f"train-{number:06}",
        "schedulerName": "default-scheduler",
        "securityContext": {"fsGroup": 1000},
        "tolerations": [
            {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        ],
        "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority",
    }


def _container(name: str, number: int) -> Object:
    rank = {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}
    return {
        "name": name,
        "image": f"registry.example.com/team/{name}:2.7.1-cuda12",
        "command": ["torchrun", "/workspace/train.py", "--epochs=10"],
        "env": [
            {"name": "PET_NNODES", "value": "4"},
            {"name": "PET_NPROC_PER_NODE", "value": "8"},
            {"name": "PET_MASTER_ADDR", "value": f"train-{number:06}-node-0-0.train-{number:06}"},
            {"name": "PET_NODE_RANK", "valueFrom": rank},
        ],
        "resources": {
            "limits": {"cpu": "16", "memory": "128Gi", "nvidia.com/gpu": "8"},
        },
        "volumeMounts": [
            {"name": "workspace", "mountPath": "/workspace"},
            {"name": "shared-memory", "mountPath": "/dev/shm"},  # noqa: S108 - a pod's, not ours
        ],
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }


def _pod_status(number: int) -> Object:
    address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    conditions = ("Initialized", "Ready", "ContainersReady", "PodScheduled")
    return {
        "phase": "Running",
        "conditions": [{"type": kind, "status": "True", "lastTransitionTime": _CREATED} for kind in conditions],
        "hostIP": f"192.168.{number % 500 // 250}.{number % 250}",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": _CREATED,
        "containerStatuses": [_container_status("progress", number), _container_status("trainer", number)],
        "qosClass": "Guaranteed",
    }


def _container_status(name: str, number: int) -> Object:
    digest = uuid.uuid5(uuid.NAMESPACE_OID, f"{name} {number}").hex * 2
    return {
        "name": name,
        "state": {"running": {"startedAt": _CREATED}},
        "lastState": {},
        "ready": True,
        "restartCount": 0,
        "image": f"registry.example.com/team/{name}:2.7.1-cuda12",
        "imageID": f"registry.example.com/team/{name}@sha256:{digest}",
        "containerID": f"containerd://{digest}",
        "started": True,
    }
