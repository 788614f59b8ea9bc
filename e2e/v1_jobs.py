"""PyTorchJobs and JAXJobs of `kubeflow.org/v1`, as users write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from e2e.cluster import IMAGE, Cluster
from e2e.waiting import until


def replica(container: str, command: Sequence[str], replicas: int = 1, **more: Any) -> dict[str, Any]:
    """The pods of a role."""
    spec = {"containers": [{"name": container, "image": IMAGE, "command": list(command)} | more]}
    return {"replicas": replicas, "restartPolicy": "Never", "template": {"spec": spec}}


def pytorch_job(name: str, command: Sequence[str], workers: int = 1, **spec: Any) -> dict[str, Any]:
    """A PyTorchJob with a Master and workers that run the same."""
    specs = {"Master": replica("pytorch", command), "Worker": replica("pytorch", command, workers)}
    return _job("PyTorchJob", name, {"pytorchReplicaSpecs": specs} | spec)


def jax_job(name: str, command: Sequence[str], workers: int = 2, **spec: Any) -> dict[str, Any]:
    """A JAXJob."""
    return _job("JAXJob", name, {"jaxReplicaSpecs": {"Worker": replica("jax", command, workers)}} | spec)


def _job(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "kubeflow.org/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def conditions(cluster: Cluster, resource: str, name: str) -> list[str]:
    """The conditions of a job, those that are False with an exclamation mark."""
    job = cluster.get(resource, name) or {}
    found = (job.get("status") or {}).get("conditions") or []
    return [each["type"] if each["status"] == "True" else f"!{each['type']}" for each in found]


def wait_for(cluster: Cluster, resource: str, name: str, condition: str, timeout: float = 60) -> None:
    """Wait until a job has this condition last."""
    until(
        lambda: conditions(cluster, resource, name)[-1:] == [condition],
        lambda: f"{resource} {name} is {condition}, and not {conditions(cluster, resource, name)}",
        timeout=timeout,
    )
