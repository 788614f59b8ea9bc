"""TrainJobs and runtimes for tests."""

from __future__ import annotations

from typing import Any

from trainer.api.trainingruntime import ClusterTrainingRuntime
from trainer.api.trainjob import TrainJob
from trainer.kube.objects import Object


def train_job_object(name: str = "demo", *, status: Object | None = None, **spec: Any) -> Object:
    """A TrainJob as the API server returns it."""
    obj: Object = {
        "apiVersion": "trainer.kubeflow.org/v2alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-of-{name}"},
        "spec": {"runtimeRef": {"name": "blueprint"}} | spec,
    }
    return obj | ({"status": status} if status else {})


def train_job(name: str = "demo", *, status: Object | None = None, **spec: Any) -> TrainJob:
    """A TrainJob as it is read from the cluster."""
    return TrainJob.from_object(train_job_object(name, status=status, **spec))


def replicated_job(
    name: str = "Node", *containers: Object, pod: Object | None = None, job: Object | None = None, **fields: Any
) -> Object:
    """An entry of `replicatedJobs`; its only container is called trainer if none is given."""
    spec = {"containers": list(containers) or [{"name": "trainer", "image": "runtime-image"}]} | (pod or {})
    return {"name": name, "template": {"spec": (job or {}) | {"template": {"spec": spec}}}} | fields


def runtime_object(*jobs: Object, policy: Object | None = None, jobset: Object | None = None, **spec: Any) -> Object:
    """A ClusterTrainingRuntime as the API server returns it."""
    template = {"spec": {"replicatedJobs": list(jobs) or [replicated_job()]} | (jobset or {})}
    return {
        "apiVersion": "trainer.kubeflow.org/v2alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "blueprint"},
        "spec": {"template": template} | ({} if policy is None else {"mlPolicy": policy}) | spec,
    }


def runtime(
    *jobs: Object, policy: Object | None = None, jobset: Object | None = None, **spec: Any
) -> ClusterTrainingRuntime:
    """A ClusterTrainingRuntime as it is read from the cluster."""
    return ClusterTrainingRuntime.from_object(runtime_object(*jobs, policy=policy, jobset=jobset, **spec))


def pod_metadata(name: str, *, job: str = "node", **labels: str) -> Object:
    """Metadata of a pod as the first Job of a replicated Job of the JobSet demo makes it.

    Args:
        name: of the pod.
        job: the replicated Job.
        labels: others than those of the Job; `_` stands for `-`, and the domain is jobset.sigs.k8s.io.
    """
    parts = {"jobset-name": "demo", "replicatedjob-name": job, "job-index": "0"}
    own = {name.replace("_", "-"): value for name, value in labels.items()}
    owner = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": f"demo-{job}-0",
        "uid": f"uid-of-{job}",
        "controller": True,
    }
    return {
        "name": name,
        "namespace": "default",
        "labels": {f"jobset.sigs.k8s.io/{part}": value for part, value in (parts | own).items()},
        "ownerReferences": [owner | {"controller": True}],
    }


def env_of(container: Object) -> dict[str, Any]:
    """Environment variables by name."""
    return {variable["name"]: variable.get("value", variable.get("valueFrom")) for variable in container["env"]}
