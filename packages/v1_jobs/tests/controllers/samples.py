"""Jobs of the served kinds, as users write them."""

from __future__ import annotations

from typing import Any

from trainer.api.kubeflow_v1 import JAX_JOBS, PYTORCH_JOBS
from trainer.kube.objects import Object
from trainer_v1_jobs.api.kinds import KINDS

PYTORCH = KINDS[PYTORCH_JOBS.api_version, PYTORCH_JOBS.kind]
JAX = KINDS[JAX_JOBS.api_version, JAX_JOBS.kind]


def replica(container: str = "pytorch", replicas: int | None = None, **template: Any) -> Object:
    """The pods of a role."""
    pod: Object = {"containers": [{"name": container, "image": "image", "command": ["train"]}]}
    made: Object = {"template": template | {"spec": pod}}
    return made if replicas is None else made | {"replicas": replicas}


def pytorch_job(
    workers: int = 2, *, master: bool = True, elastic: Object | None = None, name: str = "job", **run_policy: Any
) -> Object:
    """A PyTorchJob."""
    specs: Object = {"Master": replica()} if master else {}
    if workers:
        specs["Worker"] = replica(replicas=workers)
    spec: Object = {"pytorchReplicaSpecs": specs}
    if elastic is not None:
        spec["elasticPolicy"] = elastic
    return _job("PyTorchJob", name, spec, run_policy)


def elastic_job(workers: int = 2, *, name: str = "job", metrics: bool = False, **run_policy: Any) -> Object:
    """An elastic PyTorchJob of one to four workers."""
    policy: Object = {"minReplicas": 1, "maxReplicas": 4, "maxRestarts": 3}
    if metrics:
        cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}
        policy["metrics"] = [{"type": "Resource", "resource": cpu}]
    return pytorch_job(workers, master=False, elastic=policy, name=name, **run_policy)


def parted_job(workers: int = 2, *, metrics: bool = False, **run_policy: Any) -> Object:
    """An elastic PyTorchJob with a Master whose pod differs from those of the workers, so that its size is fixed."""
    job = elastic_job(workers, metrics=metrics, **run_policy)
    job["spec"]["pytorchReplicaSpecs"]["Master"] = replica(metadata={"labels": {"team": "a"}})
    return job


def jax_job(workers: int = 2, *, name: str = "job", **run_policy: Any) -> Object:
    """A JAXJob."""
    return _job("JAXJob", name, {"jaxReplicaSpecs": {"Worker": replica("jax", workers)}}, run_policy)


def _job(kind: str, name: str, spec: Object, run_policy: Object) -> Object:
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec | ({"runPolicy": run_policy} if run_policy else {}),
    }
