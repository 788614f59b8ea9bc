"""What an API server says to objects of our kinds, by the schemas and rules in the definitions alone."""

from __future__ import annotations

import copy
import functools

from tests.definitions import root_schema
from trainer.api.trainingruntime import ClusterTrainingRuntime, TrainingRuntime
from trainer.api.trainjob import TrainJob
from trainer.kube.objects import Object
from trainer_devcluster.apiserver.schema.structural import StructuralSchema

MODELS: dict[str, type[TrainJob | TrainingRuntime | ClusterTrainingRuntime]] = {
    model.__name__: model for model in (TrainJob, TrainingRuntime, ClusterTrainingRuntime)
}


def admitted(obj: Object, old: Object | None = None) -> list[str]:
    """Why a server with no webhooks refuses an object, one text for each reason; `old` is what it replaces."""
    schema = schema_of(obj["kind"])
    obj, old = copy.deepcopy(obj), copy.deepcopy(old)
    pruned = schema.prune(obj)
    schema.default(obj)
    if old is not None:
        schema.default(old)
    return [f'{path}: unknown field "{path}"' for path in pruned] + list(map(str, schema.validate(obj, old)))


@functools.cache
def schema_of(kind: str) -> StructuralSchema:
    """The schema of a kind, with its rules compiled."""
    return StructuralSchema.from_crd(root_schema(kind))
