"""The examples of KEP-2170 with stand-ins for their images.

The files are applied as they are, but for what a kustomization would change: namespaces, a suffix for the names of
cluster-scoped runtimes, a directory with the stand-ins, and commands for containers that leave it to their image.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

from e2e.cluster import Cluster
from e2e.waiting import until

EXAMPLES = Path(__file__).parents[1] / "examples" / "kep-2170"
TORCH_IMAGE = "pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime"
"""Has torchrun and Python; the dev cluster uses those of the environment under test instead."""
GPUS = 64
"""More than all examples together ask for, so that none waits for another."""
CPUS = 64
"""Likewise, on the dev cluster: its node may be a laptop."""

_STAND_INS = Path(__file__).parent / "stand_ins"
_DIRECTORY = "/stand-ins"
_CONFIG_MAP = "stand-ins"
_EXECUTABLE = 0o755


def documents(example: str) -> list[dict[str, Any]]:
    """The objects of an example."""
    return list(yaml.load_all((EXAMPLES / f"{example}.yaml").read_text(), yaml.CSafeLoader))


def job_name(example: str) -> str:
    """Name of its TrainJob."""
    return str(next(obj["metadata"]["name"] for obj in documents(example) if obj["kind"] == "TrainJob"))


def with_stand_ins(cluster: Cluster, example: str) -> list[dict[str, Any]]:
    """The objects of an example for the namespace of `cluster`, with stand-ins for its images."""
    return [_stand_ins(cluster), *(_substituted(obj, cluster) for obj in documents(example))]


def advertise_gpus(cluster: Cluster) -> None:
    """Let every node have GPUs (Kubernetes documentation, "Advertise Extended Resources for a Node")."""
    amount = {"nvidia.com/gpu": str(GPUS)} | ({"cpu": str(CPUS)} if cluster.is_local else {})
    patch = json.dumps({"status": {"capacity": amount, "allocatable": amount}})
    for node in cluster.list("node"):
        name = node["metadata"]["name"]
        cluster.kubectl("patch", "node", name, "--subresource=status", "--type=merge", "-p", patch)


def has_torch(cluster: Cluster, timeout: float) -> bool:
    """Whether the Python of pods has PyTorch; on a cluster of images, that of the image which the examples get."""
    if cluster.is_local:
        return find_spec("torch") is not None
    probe = "import importlib.util as util; raise SystemExit(not util.find_spec('torch'))"
    container = {"name": "probe", "image": TORCH_IMAGE, "command": ["python", "-c", probe]}
    pod = {"metadata": {"name": "probe"}, "spec": {"restartPolicy": "Never", "containers": [container]}}
    cluster.apply({"apiVersion": "v1", "kind": "Pod", **pod})

    def end() -> str | None:
        phase = str(((cluster.get("pod", "probe") or {}).get("status") or {}).get("phase"))
        return phase if phase in {"Succeeded", "Failed"} else None

    return until(end, "a pod has looked for PyTorch", timeout=timeout) == "Succeeded"


def _stand_ins(cluster: Cluster) -> dict[str, Any]:
    data = {path.name: path.read_text() for path in sorted(_STAND_INS.iterdir()) if path.is_file()}
    metadata = {"name": _CONFIG_MAP, "namespace": cluster.namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def _substituted(obj: dict[str, Any], cluster: Cluster) -> dict[str, Any]:
    suffix = f"-{cluster.namespace}"
    if obj["kind"] == "ClusterTrainingRuntime":
        obj["metadata"]["name"] += suffix
    else:
        obj["metadata"]["namespace"] = cluster.namespace
    if obj["kind"] == "TrainJob" and obj["spec"]["runtimeRef"].get("kind") != "TrainingRuntime":
        obj["spec"]["runtimeRef"]["name"] += suffix
    if obj["kind"].endswith("TrainingRuntime"):
        for pod in _pod_specs(obj):
            _stand_in(pod, is_local=cluster.is_local)
    elif obj["kind"] == "TrainJob" and not cluster.is_local:
        (obj["spec"].get("trainer") or {}).pop("image", None)
    return obj


def _pod_specs(runtime: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for job in runtime["spec"]["template"]["spec"]["replicatedJobs"]:
        yield job["template"]["spec"]["template"]["spec"]


def _stand_in(pod: dict[str, Any], *, is_local: bool) -> None:
    source = {"name": _CONFIG_MAP, "defaultMode": _EXECUTABLE}
    pod.setdefault("volumes", []).append({"name": _CONFIG_MAP, "configMap": source})
    for container in pod["containers"]:
        container["workingDir"] = _DIRECTORY
        container.setdefault("volumeMounts", []).append({"name": _CONFIG_MAP, "mountPath": _DIRECTORY})
        container.setdefault("command", ["python", f"{container['name'].replace('-', '_')}.py"])
        if not is_local:
            container["image"] = TORCH_IMAGE
