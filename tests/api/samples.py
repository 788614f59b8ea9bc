"""Objects of the API as users write them."""

from __future__ import annotations

from typing import Any

from trainer.kube.objects import Object

API_VERSION = "trainer.kubeflow.org/v2alpha1"


def train_job(name: str = "demo", **spec: Any) -> Object:
    """A TrainJob."""
    spec = {"runtimeRef": {"name": "torch-distributed"}} | spec
    return {"apiVersion": API_VERSION, "kind": "TrainJob", "metadata": {"name": name}, "spec": spec}


def runtime(kind: str = "ClusterTrainingRuntime", **spec: Any) -> Object:
    """A runtime."""
    spec = {"template": {"spec": {"replicatedJobs": [replicated_job()]}}} | spec
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": "demo"}, "spec": spec}


def runtime_of(*replicated_jobs: Object, **job_set: Any) -> Object:
    """A runtime with these replicated Jobs."""
    return runtime(template={"spec": {"replicatedJobs": list(replicated_jobs)} | job_set})


def replicated_job(pod: Object | None = None, **changes: Any) -> Object:
    """A replicated Job of one container; `pod` is its pod spec."""
    spec = {"containers": [{"name": "trainer", "image": "i"}]} if pod is None else pod
    return {"name": "node", "template": {"spec": {"template": {"spec": spec}}}} | changes


def runtime_with(**container: Any) -> Object:
    """A runtime of one container with these fields."""
    return runtime_of(replicated_job({"containers": [{"name": "trainer", "image": "i"} | container]}))


def pod_of(obj: Object) -> Object:
    """The first pod template of a runtime."""
    template: Object = obj["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    return template
