"""The CustomResourceDefinitions of our kinds, generated from the models; `config/crd` holds them as YAML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import yaml

from trainer.api import rules
from trainer.api.model import ApiModel
from trainer.api.schema import structural_schema
from trainer.api.trainingruntime import (
    CLUSTER_TRAINING_RUNTIMES,
    TRAINING_RUNTIMES,
    ClusterTrainingRuntime,
    TrainingRuntime,
)
from trainer.api.trainjob import TRAIN_JOBS, TrainJob
from trainer.kube.objects import Object
from trainer.kube.resource import Resource

TRAIN_JOB_COLUMNS: list[Object] = [
    {"name": "State", "type": "string", "jsonPath": ".status.state"},
    # The first of them that there is: of the training, else of what is fetched for it.
    {
        "name": "Progress %",
        "type": "integer",
        "jsonPath": ".status['trainerStatus','dataInitializerStatus','modelInitializerStatus'].progressPercentage",
        "description": "Of the training, and before it of the data and then of the model that are fetched for it.",
    },
    {"name": "ETA", "type": "string", "jsonPath": ".status.trainerStatus.estimatedRemainingTimeSummary"},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    # With -o wide. The reason alone, for a path cannot leave out a condition that is no longer true.
    {
        "name": "Pending",
        "type": "string",
        "jsonPath": '.status.conditions[?(@.type=="Pending")].reason',
        "description": "Why pods cannot start; NoPodWaits once they could.",
        "priority": 1,
    },
    {
        "name": "Checkpoint",
        "type": "date",
        "jsonPath": ".status.trainerStatus.checkpoint.time",
        "description": "How long ago the last complete checkpoint was saved.",
        "priority": 1,
    },
]

RUNTIME_COLUMNS: list[Object] = [
    {"name": "Framework", "type": "string", "jsonPath": r".metadata.labels.trainer\.kubeflow\.org/framework"},
    {"name": "Nodes", "type": "integer", "jsonPath": ".spec.mlPolicy.numNodes"},
    {"name": "Support", "type": "string", "jsonPath": r".metadata.labels.trainer\.kubeflow\.org/support"},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]

_TRAIN_JOB_SCALE = {
    "specReplicasPath": ".spec.trainer.numNodes",
    "statusReplicasPath": ".status.scale.nodes",
    "labelSelectorPath": ".status.scale.selector",
}


def crds() -> list[Object]:
    """The three CustomResourceDefinitions of v2alpha1; new objects on each call."""
    train_job = definition_of(TRAIN_JOBS, TrainJob, TRAIN_JOB_COLUMNS, short_name="tj")
    version: dict[str, Any] = train_job["spec"]["versions"][0]
    version["subresources"] = {"status": {}, "scale": _TRAIN_JOB_SCALE}
    version["schema"]["openAPIV3Schema"][rules.RULES] = rules.train_job_rules()
    return [
        train_job,
        definition_of(TRAINING_RUNTIMES, TrainingRuntime, RUNTIME_COLUMNS, short_name="trt"),
        definition_of(CLUSTER_TRAINING_RUNTIMES, ClusterTrainingRuntime, RUNTIME_COLUMNS, short_name="ctrt"),
    ]


def stream_of(definitions: Iterable[Object]) -> str:
    """CustomResourceDefinitions as one YAML stream."""
    return "".join(f"---\n{crd_yaml(crd)}" for crd in definitions)


def crd_yaml(crd: Object) -> str:
    """One CustomResourceDefinition as YAML, the same text for the same definition."""
    return yaml.dump(crd, Dumper=_Dumper, sort_keys=True, width=120, allow_unicode=True)


class _Dumper(yaml.CSafeDumper):
    """Writes repeated parts in full: kubectl reads aliases, people do not."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 the signature is PyYAML's
        return True


def definition_of(
    resource: Resource, model: type[ApiModel], columns: Sequence[Object], *, short_name: str = ""
) -> Object:
    """The CustomResourceDefinition of a kind with this model, without subresources."""
    names: Object = {
        "kind": resource.kind,
        "listKind": resource.list_kind,
        "plural": resource.plural,
        "singular": resource.kind.lower(),
        "categories": ["kubeflow"],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": resource.qualified_name},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "names": names | ({"shortNames": [short_name]} if short_name else {}),
            "versions": [
                {
                    "name": resource.version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": structural_schema(model)},
                    "additionalPrinterColumns": [dict(column) for column in columns],
                }
            ],
        },
    }
