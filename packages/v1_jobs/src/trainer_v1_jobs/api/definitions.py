"""The CustomResourceDefinitions of the v1 kinds that are served; `config/v1/crd` holds them as YAML.

They accept what those of Training Operator 1.9 accept, but for unknown fields and values out of bounds.
"""

from __future__ import annotations

from typing import Final

from trainer.api import rules
from trainer.api.crds import definition_of
from trainer.kube.objects import Object
from trainer_v1_jobs.api.kinds import SERVED_KINDS, JobKind

_COLUMNS: Final[list[Object]] = [
    {"name": "State", "type": "string", "jsonPath": ".status.conditions[-1:].type"},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]
_WORKER: Final = "Worker"


def served_definitions() -> list[Object]:
    """The definitions of PyTorchJob and JAXJob; new objects on each call."""
    return [_definition(kind) for kind in SERVED_KINDS]


def _definition(kind: JobKind) -> Object:
    definition = definition_of(kind.resource, kind.model, _COLUMNS)
    version = definition["spec"]["versions"][0]
    version["subresources"] = {"status": {}, "scale": _scale(kind)}
    schema = version["schema"]["openAPIV3Schema"]
    schema[rules.RULES] = [
        rules.cel_rule(
            "oldSelf.hasValue() || (self.metadata.name.size() <= 63"
            " && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$'))",
            f"{rules.NAME_LENGTH}; {rules.NAME_FORM}",
        )
        | {"optionalOldSelf": True}
    ]
    roles = schema["properties"]["spec"]["properties"][kind.replicas_field]
    replica = roles["additionalProperties"]["properties"]
    replica["replicas"]["default"] = 1
    replica["restartPolicy"]["default"] = kind.restart_policy
    return definition


def _scale(kind: JobKind) -> Object:
    """The number of workers, for `kubectl scale` and autoscalers, which need the selector as text."""
    status = f".status.replicaStatuses.{_WORKER}"
    return {
        "specReplicasPath": f".spec.{kind.replicas_field}.{_WORKER}.replicas",
        "statusReplicasPath": f"{status}.active",
        "labelSelectorPath": f"{status}.selector",
    }
