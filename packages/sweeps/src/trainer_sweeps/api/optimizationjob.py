"""OptimizationJob: the search for the parameters with which a training ends best (KEP-3562).

The parts of its model are in `spec.py` and `status.py`; what is not of the API imports all of them from here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from pydantic import ConfigDict, Field

from trainer.api import patterns, rules
from trainer.api.labels import check_metadata
from trainer.api.metadata import ObjectMetadata
from trainer.api.model import ApiModel
from trainer.api.optimization import MOST_TRIALS, OPTIMIZATION_JOBS, trial_name
from trainer.kube.field_errors import FieldError, invalid
from trainer_sweeps.api.search_space import check_space
from trainer_sweeps.api.spec import (
    Aggregate,
    AshaPruning,
    Categorical,
    Direction,
    Grid,
    Interval,
    MedianPruning,
    Objective,
    OptimizationJobSpec,
    Parameter,
    PositiveInterval,
    PruneAlgorithm,
    Random,
    SearchAlgorithm,
    SearchSpace,
    Sequential,
    TrainJobTemplate,
    TrialMetadata,
)
from trainer_sweeps.api.status import (
    LONGEST_MESSAGE,
    ConditionReason,
    ConditionType,
    EndedTrial,
    OptimizationJobStatus,
    ParameterAssignment,
    Result,
    State,
    TrialCounts,
    TrialState,
)

__all__ = [
    "LONGEST_MESSAGE",
    "LONGEST_NAME",
    "NAME_LENGTH",
    "Aggregate",
    "AshaPruning",
    "Categorical",
    "ConditionReason",
    "ConditionType",
    "Direction",
    "EndedTrial",
    "Grid",
    "Interval",
    "MedianPruning",
    "Objective",
    "OptimizationJob",
    "OptimizationJobSpec",
    "OptimizationJobStatus",
    "Parameter",
    "ParameterAssignment",
    "PositiveInterval",
    "PruneAlgorithm",
    "Random",
    "Result",
    "SearchAlgorithm",
    "SearchSpace",
    "Sequential",
    "State",
    "TrainJobTemplate",
    "TrialCounts",
    "TrialMetadata",
    "TrialState",
]

LONGEST_NAME: Final = 63 - len(trial_name("", MOST_TRIALS))
"""Characters of the name of a sweep, so that all of its trials can have names."""
NAME_LENGTH: Final = (
    f"metadata.name must have at most {LONGEST_NAME} characters, as trials are called NAME-trial-1 and so on"
)


class OptimizationJob(ApiModel):
    """A sweep: TrainJobs with different parameters, to find the best of them."""

    model_config = ConfigDict(
        json_schema_extra=rules.cel_rules(
            rules.of_new(f"self.metadata.name.size() <= {LONGEST_NAME}", NAME_LENGTH),
            rules.of_new(f"self.metadata.name.matches('{patterns.HOST_LABEL}')", rules.NAME_FORM),
        )
    )

    api_version: str = OPTIMIZATION_JOBS.api_version
    kind: Literal["OptimizationJob"] = "OptimizationJob"
    metadata: ObjectMetadata = Field(default_factory=ObjectMetadata)
    spec: OptimizationJobSpec
    """What to search, and how; nothing but suspend and ttlSecondsAfterFinished can be changed."""
    status: OptimizationJobStatus | None = None
    """What the sweep has reached; written by the system."""

    def semantic_errors(self) -> Iterator[FieldError]:
        """What is wrong with its name, its parameters and the metadata of its trials although they fit the schema."""
        name = self.metadata.name
        if len(name) > LONGEST_NAME:
            yield invalid("metadata.name", name, NAME_LENGTH.removeprefix("metadata.name "))
        elif name and not patterns.compiled(patterns.HOST_LABEL).search(name):
            yield invalid("metadata.name", name, patterns.WORDS[patterns.HOST_LABEL])
        yield from check_space(self.spec)
        if (metadata := self.spec.train_job_template.metadata) is not None:
            yield from check_metadata(metadata.to_object(), "spec.trainJobTemplate.metadata")
