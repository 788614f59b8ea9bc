"""Runtimes and TrainJobs for the tables of this folder."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, Runtime
from trainer.api.trainjob import TrainJob
from trainer.framework.runtimes.runtimes import RuntimeNotFoundError, read_runtime, runtime_place, snapshot_key
from trainer.kube.objects import Object, ObjectKey

API_VERSION = "trainer.kubeflow.org/v2alpha1"
STEP = "trainer.kubeflow.org/trainjob-ancestor-step"


def job(name: str = "demo", *, runtime: str = "plain", status: Object | None = None, **spec: Any) -> Object:
    """A TrainJob; spec members with the value None are left out."""
    members = {"runtimeRef": {"name": runtime}} | spec
    obj: Object = {
        "apiVersion": API_VERSION,
        "kind": "TrainJob",
        "metadata": {"name": name, "namespace": "default", "uid": "uid-1"},
        "spec": {name: value for name, value in members.items() if value is not None},
    }
    return obj | ({"status": status} if status is not None else {})


def trainer(**settings: Any) -> Object:
    """A TrainJob with these settings of the trainer, on the runtime `plain`."""
    return job(trainer=settings)


def override(runtime: str = "plain", **members: Any) -> Object:
    """A TrainJob with one override of the replicated Job node."""
    return job(runtime=runtime, podSpecOverrides=[{"targetJobs": [{"name": "node"}]} | members])


def container(name: str = "trainer", **fields: Any) -> Object:
    """A container with an image."""
    return {"name": name, "image": "image"} | fields


def replicated_job(
    name: str = "node",
    *containers: Object,
    pod: Object | None = None,
    job_spec: Object | None = None,
    step: str = "",
    **fields: Any,
) -> Object:
    """A replicated Job; its only container is called trainer if none is given."""
    pod_spec = {"restartPolicy": "Never", "containers": list(containers) or [container()]} | (pod or {})
    template: Object = {"spec": (job_spec or {}) | {"template": {"spec": pod_spec}}}
    if step:
        template["metadata"] = {"labels": {STEP: step}}
    return {"name": name, "template": template} | fields


def blueprint(
    *jobs: Object,
    name: str = "blueprint",
    kind: str = "ClusterTrainingRuntime",
    policy: Object | None = None,
    jobset: Object | None = None,
    **spec: Any,
) -> Object:
    """A runtime of either kind."""
    template = {"spec": {"replicatedJobs": list(jobs) or [replicated_job()]} | (jobset or {})}
    namespace = {} if kind == CLUSTER_TRAINING_RUNTIMES.kind else {"namespace": "default"}
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"name": name} | namespace,
        "spec": {"template": template} | ({"mlPolicy": policy} if policy is not None else {}) | spec,
    }


def _initializer() -> Object:
    return replicated_job("initializer", container("dataset-initializer"), container("model-initializer"))


RUNTIMES = {
    runtime["metadata"]["name"]: runtime
    for runtime in (
        blueprint(name="plain"),
        blueprint(name="torch", policy={"numNodes": 2, "torch": {"numProcPerNode": "auto"}}),
        blueprint(name="jax", policy={"jax": {}}),
        blueprint(name="mpi", policy={"mpi": {}}),
        blueprint(name="gang", podGroupPolicy={"volcano": {}}),
        blueprint(name="elastic", policy={"torch": {"elasticPolicy": {"minNodes": 1, "maxNodes": 2}}}),
        blueprint(name="elastic-many", policy={"torch": {"elasticPolicy": {"minNodes": 1, "maxNodes": 1000}}}),
        blueprint(_initializer(), replicated_job(), name="fine-tuning"),
        blueprint(
            replicated_job("node", container(resources={"limits": {"cpu": "4"}}), container("sidecar")), name="limited"
        ),
        blueprint(replicated_job("launcher"), replicated_job("worker"), name="headless"),
        blueprint(replicated_job("node", {"name": "trainer"}), name="bare"),
    )
}
"""ClusterTrainingRuntimes by name, all of which can be stored."""


class StaticRuntimes:
    """A source of runtimes without a cluster.

    Args:
        runtimes: the ClusterTrainingRuntimes there are.
        snapshots: runtimes of TrainJobs that have been built, by the key of the snapshot.
    """

    def __init__(self, runtimes: Iterable[Object] = (), snapshots: dict[ObjectKey, Object] | None = None) -> None:
        self._runtimes = {runtime["metadata"]["name"]: runtime for runtime in runtimes}
        self._snapshots = snapshots or {}

    async def of(self, train_job: TrainJob) -> Runtime:
        """See `RuntimeSource.of`."""
        resource, key = runtime_place(train_job)
        found = self._snapshots.get(snapshot_key(train_job)) or self._runtimes.get(key.name)
        if found is None:
            raise RuntimeNotFoundError(resource.kind, key)
        return read_runtime(resource, found)
