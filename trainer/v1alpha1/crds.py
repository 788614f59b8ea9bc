"""The CustomResourceDefinitions of our kinds by version; `config/v1alpha1/crd` holds those of v1alpha1 as YAML."""

from __future__ import annotations

from typing import Final

from trainer.api import crds as v2alpha1
from trainer.api.crds import RUNTIME_COLUMNS, TRAIN_JOB_COLUMNS, definition_of, stream_of
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.objects import Object
from trainer.v1alpha1 import trainingruntime, trainjob
from trainer.v1alpha1.client import SERVED
from trainer.v1alpha1.discovery import Version
from trainer.v1alpha1.status import FURTHER_CONDITIONS

_TRAIN_JOB_COLUMNS: list[Object] = [
    column | {"jsonPath": column["jsonPath"].replace(".conditions", f".{FURTHER_CONDITIONS}")}
    for column in TRAIN_JOB_COLUMNS
]
_REPLICATED_JOB_DEFAULTS: Final = {"replicas": 1, "groupName": "default"}
"""Defaults of the CRDs of Kubeflow Trainer (Go) without which their Go clients, Kueue among them, count no pods."""


def crds(version: Version = "v2alpha1") -> list[Object]:
    """The three CustomResourceDefinitions of a version; new objects on each call."""
    return _v1alpha1() if version == "v1alpha1" else v2alpha1.crds()


def crds_yaml(version: Version = "v2alpha1") -> str:
    """The CustomResourceDefinitions as one YAML stream, ready for `kubectl apply -f -`."""
    return stream_of(crds(version))


def _v1alpha1() -> list[Object]:
    train_job = definition_of(SERVED[TRAIN_JOBS], trainjob.TrainJob, _TRAIN_JOB_COLUMNS, short_name="tj")
    train_job["spec"]["versions"][0]["subresources"] = {"status": {}}
    runtimes = [
        definition_of(SERVED[TRAINING_RUNTIMES], trainingruntime.TrainingRuntime, RUNTIME_COLUMNS, short_name="trt"),
        definition_of(
            SERVED[CLUSTER_TRAINING_RUNTIMES],
            trainingruntime.ClusterTrainingRuntime,
            RUNTIME_COLUMNS,
            short_name="ctrt",
        ),
    ]
    for runtime in runtimes:
        spec = runtime["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        jobs = spec["template"]["properties"]["spec"]["properties"]["replicatedJobs"]["items"]["properties"]
        for name, default in _REPLICATED_JOB_DEFAULTS.items():
            jobs[name]["default"] = default
        pods = jobs["template"]["properties"]["spec"]["properties"]["template"]["properties"]["spec"]["properties"]
        for kind in ("containers", "initContainers"):
            value = pods[kind]["items"]["properties"]["env"]["items"]["properties"]["value"]
            # Clients in Go, such as Kueue, cannot read any runtime while one has an integer here.
            value.pop("anyOf", None)
            value.pop("x-kubernetes-int-or-string", None)
            value["type"] = "string"
    return [train_job, *runtimes]
