"""The CustomResourceDefinition of OptimizationJob, for each version of TrainJobs that a cluster serves."""

from __future__ import annotations

from typing import Final

import msgspec

from trainer.api.crds import definition_of
from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.api.rules import RULES
from trainer.kube.objects import Object
from trainer.v1alpha1.crds import crds
from trainer.v1alpha1.discovery import Version
from trainer_sweeps.api.optimizationjob import OptimizationJob

_COLUMNS: Final[list[Object]] = [
    {"name": "State", "type": "string", "jsonPath": ".status.state"},
    {"name": "Progress %", "type": "integer", "jsonPath": ".status.progressPercentage"},
    {"name": "Best", "type": "string", "jsonPath": ".status.result.value"},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    {"name": "Running", "type": "integer", "jsonPath": ".status.trialCounts.running", "priority": 1},
    {"name": "Succeeded", "type": "integer", "jsonPath": ".status.trialCounts.succeeded", "priority": 1},
    {"name": "Failed", "type": "integer", "jsonPath": ".status.trialCounts.failed", "priority": 1},
    {"name": "Pruned", "type": "integer", "jsonPath": ".status.trialCounts.pruned", "priority": 1},
    {"name": "Best Trial", "type": "string", "jsonPath": ".status.result.trainJobName", "priority": 1},
]


def definition(version: Version = "v2alpha1") -> Object:
    """The definition whose trials are TrainJobs of a version; a new object on each call."""
    resource = msgspec.structs.replace(OPTIMIZATION_JOBS, version=version)
    made = definition_of(resource, OptimizationJob, _COLUMNS, short_name="optjob")
    made["spec"]["versions"][0]["subresources"] = {"status": {}}
    spec = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    train_job = crds(version)[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    template = spec["trainJobTemplate"]["properties"]
    template["spec"] = _without_transitions(train_job["properties"]["spec"]) | {
        "description": template["spec"]["description"]
    }
    return made


def _without_transitions(schema: Object) -> Object:
    """A schema without the rules that compare with the old value: a template is immutable as a whole."""
    found: Object = {
        name: _without_transitions(value) if isinstance(value, dict) else value for name, value in schema.items()
    }
    if RULES in found:
        found[RULES] = [rule for rule in found[RULES] if "oldSelf" not in rule["rule"]]
        if not found[RULES]:
            del found[RULES]
    return found
