"""What is created: TrainJobs of one runtime, and the JobSets that the floor creates in their place."""

from __future__ import annotations

import msgspec

from trainer.api.trainingruntime import TRAINING_RUNTIMES, TrainingRuntime
from trainer.api.trainjob import TRAIN_JOBS, TrainJob
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.testing import StaticReader
from trainer.kube.objects import Object
from trainer.manager import built_in_plugins
from trainer.workloads import JOBSETS

RUNTIME = "benchmark"
MANAGED_BY = "trainer.kubeflow.org/benchmark"
"""Of the JobSets, so that the JobSet controller of the cluster leaves them to the benchmark."""


class Load(msgspec.Struct, frozen=True):
    """How much is asked for."""

    jobs: int = 1000
    concurrency: int = 32
    """Requests of the benchmark that are under way at once."""
    pending_seconds: float = 0.0
    """How long JobSets of the manager stay without status once all exist, as where their controller is slow. Defaults
    to not at all, so that most TrainJobs complete before their first status is written."""
    rate: float = 10.0
    """TrainJobs a second while the latency is measured."""
    rate_seconds: float = 20.0
    """How long."""
    quiet_seconds: float = 30.0
    """How long the manager is watched while nothing happens."""
    settled_seconds: float = 2.0
    """Without a reconcile or a request, after which the manager is taken to have nothing left to do."""


def runtime(namespace: str) -> Object:
    """The blueprint: torchrun on two nodes, as most people train."""
    container = {"name": "node", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    pod_template = {
        "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }
    return {
        "apiVersion": TRAINING_RUNTIMES.api_version,
        "kind": TRAINING_RUNTIMES.kind,
        "metadata": {
            "name": RUNTIME,
            "namespace": namespace,
            "labels": {"trainer.kubeflow.org/framework": "torch"},
        },
        "spec": {
            "mlPolicy": {"numNodes": 2, "torch": {"numProcPerNode": "1"}},
            "template": {
                "spec": {"managedBy": MANAGED_BY, "replicatedJobs": [{"name": "node", "template": pod_template}]}
            },
        },
    }


def train_job(namespace: str, name: str) -> Object:
    """Ten lines of a data scientist."""
    return {
        "apiVersion": TRAIN_JOBS.api_version,
        "kind": TRAIN_JOBS.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "runtimeRef": {"kind": TRAINING_RUNTIMES.kind, "name": RUNTIME},
            "trainer": {"image": "none", "command": ["python", "train.py"], "args": ["--epochs", "3"]},
        },
    }


def job_set(namespace: str, name: str) -> Object:
    """The JobSet that the manager makes of that TrainJob, without owner."""
    job = TrainJob.from_object(train_job(namespace, name))
    pipeline = Pipeline(built_in_plugins(StaticReader()))
    components = pipeline.build(job, TrainingRuntime.from_object(runtime(namespace)))
    return next(component.object for component in components if component.resource == JOBSETS)


def completed(now: str) -> Object:
    """The status of a JobSet whose Jobs have succeeded."""
    condition = {
        "type": "Completed",
        "status": "True",
        "reason": "AllJobsCompleted",
        "message": "jobset completed successfully",
        "lastTransitionTime": now,
    }
    counts = {"name": "node", "ready": 0, "succeeded": 1, "failed": 0, "active": 0, "suspended": 0}
    return {
        "conditions": [condition],
        "terminalState": "Completed",
        "restarts": 0,
        "replicatedJobsStatus": [counts],
    }
