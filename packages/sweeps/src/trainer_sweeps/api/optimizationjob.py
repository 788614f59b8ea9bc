"""OptimizationJob: the search for the parameters with which a training ends best (KEP-3562)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field

from trainer.api.metadata import Condition, ObjectMetadata, TemplateMetadata
from trainer.api.model import ApiModel, Count, Int32, Int64, JsonObject, Time, atomic_list, list_map, set_list, text
from trainer.api.optimization import OPTIMIZATION_JOBS

NUMBER: Final = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$"
"""Pattern of bounds."""
MOST_TRIALS: Final = 100
MOST_PARAMETERS: Final = 100
LONGEST_TEXT: Final = 64
"""Most characters of the name of a parameter, of a bound, and of a choice."""
LONGEST_MESSAGE: Final = 512

_Number = Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT, json_schema_extra=text(pattern=NUMBER))]
_Text = Annotated[str, Field(max_length=LONGEST_TEXT)]
_Name = Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT)]


class Direction(StrEnum):
    """What is better."""

    MAXIMIZE = "Maximize"
    """A greater value."""
    MINIMIZE = "Minimize"
    """A smaller value."""


class Aggregate(StrEnum):
    """How one value is made of a curve."""

    LAST = "Last"
    """The last one that was reported."""
    MIN = "Min"
    """The least one."""
    MAX = "Max"
    """The greatest one."""


class Objective(ApiModel):
    """The metric that the sweep optimizes."""

    metric: _Name
    """Name of the metric that the trials report, such as val_loss."""
    direction: Literal[Direction.MAXIMIZE, Direction.MINIMIZE] = Direction.MINIMIZE
    """Whether a greater or a smaller value is better."""
    aggregate: Literal[Aggregate.LAST, Aggregate.MIN, Aggregate.MAX] = Aggregate.LAST
    """How the value of a trial is made of its curve."""


class Interval(ApiModel):
    """Numbers between two bounds, both included."""

    min: _Number
    """Least value."""
    max: _Number
    """Greatest value."""
    type: Literal["Int", "Float"] = "Float"
    """Whether values are integers."""


class Categorical(ApiModel):
    """Texts of which one is chosen."""

    choices: Annotated[list[_Text], Field(json_schema_extra=set_list(100, 1))]
    """The texts."""


class SearchSpace(ApiModel):
    """The values of a parameter; exactly one of the fields is set."""

    uniform: Interval | None = None
    """Numbers, each as likely as any other."""
    log_uniform: Interval | None = None
    """Positive numbers, each order of magnitude as likely as any other."""
    categorical: Categorical | None = None
    """Texts, each as likely as any other."""


class Parameter(ApiModel):
    """A parameter of the training."""

    name: _Name
    """Its name. The program gets its value by the environment variable KUBEFLOW_TRAINER_OPT_ and the name in capitals,
    with _ for what is no letter, digit or _."""
    search_space: SearchSpace
    """The values that it can have."""


class Random(ApiModel):
    """Draws each trial by itself."""

    seed: Int64 | None = None
    """The same seed gives the same trials. Default: made from the uid of the OptimizationJob."""


class Grid(ApiModel):
    """Tries all combinations, the values of the last parameter first; all parameters must be categorical."""


class Sequential(ApiModel):
    """Draws some trials at random, and others from what the trials before have reached."""

    seed: Int64 | None = None
    """The same seed and the same results give the same next trial. Default: made from the uid of the
    OptimizationJob."""
    startup_trials: Annotated[Int32, Field(ge=1, le=MOST_TRIALS)] | None = None
    """Trials that are drawn at random before the algorithm begins. Default: 10."""


class SearchAlgorithm(ApiModel):
    """How parameters are chosen; exactly one of the fields is set."""

    random: Random | None = None
    """Random search."""
    grid: Grid | None = None
    """Grid search."""
    tpe: Sequential | None = None
    """Tree-structured Parzen estimator."""
    gp: Sequential | None = None
    """Bayesian optimization with a Gaussian process; its libraries are to be installed beside the manager."""
    cma_es: Sequential | None = None
    """Covariance matrix adaptation evolution strategy; categorical parameters are drawn at random."""


class MedianPruning(ApiModel):
    """Stops a trial whose best value so far is worse than the median of the other trials at the same step."""

    startup_trials: Annotated[Int32, Field(ge=1, le=MOST_TRIALS)] = 5
    """Trials that end before the first one is stopped."""
    warmup_steps: Count = 0
    """Steps of a trial before which it is not stopped."""
    interval_steps: Annotated[Int32, Field(ge=1)] = 1
    """Steps between two decisions about one trial."""


class AshaPruning(ApiModel):
    """Asynchronous successive halving: at each rung only the best trials go on (Li et al. 2020)."""

    warmup_steps: Annotated[Int32, Field(ge=1)] = 1
    """Steps of the first rung, before which no trial is stopped. Each later rung is reductionFactor times as far."""
    reduction_factor: Annotated[Int32, Field(ge=2, le=100)] = 3
    """One of so many trials goes on from a rung."""
    interval_steps: Annotated[Int32, Field(ge=1)] = 1
    """Steps between two decisions about one trial."""


class PruneAlgorithm(ApiModel):
    """How hopeless trials are found; exactly one of the fields is set. Steps are those that the trials report."""

    median: MedianPruning | None = None
    """By the median of the other trials."""
    asha: AshaPruning | None = None
    """By successive halving."""


class TrainJobTemplate(ApiModel):
    """The TrainJob of each trial."""

    metadata: TemplateMetadata | None = None
    """Labels and annotations of the trials."""
    spec: JsonObject
    """Spec of the trials, a TrainJobSpec of the version that the cluster serves."""


class OptimizationJobSpec(ApiModel):
    """What to search, and how."""

    objectives: Annotated[list[Objective], Field(json_schema_extra=list_map("metric", 1) | {"minItems": 1})]
    """The metric to optimize; there can be only one."""
    search_algorithm: SearchAlgorithm = SearchAlgorithm(random=Random())
    """How parameters are chosen."""
    prune_algorithm: PruneAlgorithm | None = None
    """How hopeless trials are found. Default: none is stopped before its end."""
    parameters: Annotated[list[Parameter], Field(json_schema_extra=list_map("name", MOST_PARAMETERS) | {"minItems": 1})]
    """The parameters."""
    num_trials: Annotated[Int32, Field(ge=1, le=MOST_TRIALS)] = 1
    """Trials to run, those that fail or are stopped included."""
    parallel_trials: Annotated[Int32, Field(ge=1, le=MOST_TRIALS)] = 1
    """Most trials that run at once."""
    max_failed_trials: Count | None = None
    """The sweep fails when more trials than this have failed. Default: it goes on."""
    suspend: bool = False
    """Whether its trials are suspended, and no other is begun."""
    ttl_seconds_after_finished: Count | None = None
    """Seconds after its end when it is deleted, with its trials. Default: it stays."""
    train_job_template: TrainJobTemplate
    """The TrainJob of each trial."""


class ConditionType(StrEnum):
    """Conditions of an OptimizationJob."""

    CREATED = "Created"
    """Whether trials can be chosen and created."""
    SUSPENDED = "Suspended"
    """Whether it is suspended by spec.suspend. Absent from one that never was."""
    COMPLETE = "Complete"
    """True when all trials have ended; final."""
    FAILED = "Failed"
    """True when too many trials have failed, or all; final."""


class ConditionReason(StrEnum):
    """Reasons of conditions."""

    TRAIN_JOBS_CREATED = "TrainJobsCreated"
    """Condition Created is True."""
    ALGORITHM_CREATION_FAILED = "AlgorithmServiceCreationFailed"
    """Condition Created is False: the next trial cannot be chosen; the message says why. The name is the KEP's."""
    TRAIN_JOBS_CREATION_FAILED = "TrainJobsCreationFailed"
    """Condition Created is False: the API server has refused a trial, or its name is taken. It is tried again."""
    SUSPENDED = "Suspended"
    """Condition Suspended is True."""
    RESUMED = "Resumed"
    """Condition Suspended is False."""
    MAX_TRIALS_REACHED = "MaxTrialsReached"
    """Condition Complete is True."""
    MAX_FAILED_TRIALS_REACHED = "MaxFailedTrialsReached"
    """Condition Failed is True: more trials have failed than spec.maxFailedTrials allows."""
    NO_TRIAL_SUCCEEDED = "NoTrialSucceeded"
    """Condition Failed is True: all trials have ended, and none of them has a value."""


class State(StrEnum):
    """The state of an OptimizationJob in one word."""

    BLOCKED = "Blocked"
    """Trials cannot be chosen or created (condition Created is False)."""
    RUNNING = "Running"
    """Trials run, or are about to."""
    SUSPENDED = "Suspended"
    """It is suspended."""
    COMPLETE = "Complete"
    """All trials have ended."""
    FAILED = "Failed"
    """Too many trials have failed, or all."""


class TrialState(StrEnum):
    """The state of a trial in one word."""

    RUNNING = "Running"
    """It has not ended; it may wait, or be suspended with its sweep."""
    SUCCEEDED = "Succeeded"
    """It is complete and has a value."""
    FAILED = "Failed"
    """It has failed, or has reported no value."""
    PRUNED = "Pruned"
    """The sweep has stopped it as hopeless."""


class ParameterAssignment(ApiModel):
    """A parameter and its value."""

    name: _Name
    """Name of the parameter."""
    value: _Text
    """Its value, as the program gets it."""


class Result(ApiModel):
    """The best trial so far."""

    train_job_name: Annotated[str, Field(min_length=1, max_length=63)]
    """Name of its TrainJob."""
    value: Annotated[str, Field(max_length=LONGEST_TEXT)] | None = None
    """The value of its objective, digit by digit as it was reported."""
    parameters: Annotated[
        list[ParameterAssignment] | None, Field(json_schema_extra=list_map("name", MOST_PARAMETERS))
    ] = None
    """Its parameters."""


class TrialCounts(ApiModel):
    """How many trials are in which state."""

    running: Count = 0
    """Trials that have not ended."""
    succeeded: Count = 0
    """Trials that are complete and have a value."""
    failed: Count = 0
    """Trials that have failed, or have reported no value."""
    pruned: Count = 0
    """Trials that were stopped as hopeless."""


class EndedTrial(ApiModel):
    """A trial that has ended. It counts also when its TrainJob is deleted."""

    number: Annotated[Int32, Field(ge=1, le=MOST_TRIALS)]
    """Its number, from 1."""
    state: Literal[TrialState.SUCCEEDED, TrialState.FAILED, TrialState.PRUNED]
    """How it has ended."""
    value: Annotated[str, Field(max_length=LONGEST_TEXT)] | None = None
    """The value of the objective; of a trial that was stopped, the last one."""
    step: Count | None = None
    """The last step that it has reported."""
    parameter_values: Annotated[list[_Text], Field(json_schema_extra=atomic_list(MOST_PARAMETERS))]
    """The values of its parameters, in the order of spec.parameters."""
    message: Annotated[str, Field(max_length=LONGEST_MESSAGE)] | None = None
    """Why it has failed or was stopped."""


class OptimizationJobStatus(ApiModel):
    """What the sweep has reached."""

    state: State | None = None
    """The state in one word."""
    conditions: Annotated[list[Condition] | None, Field(json_schema_extra=list_map("type", 100))] = None
    """The conditions."""
    progress_percentage: Annotated[Int32, Field(ge=0, le=100)] | None = None
    """Share of the trials that have ended, in percent."""
    trial_counts: TrialCounts | None = None
    """How many trials are in which state."""
    trials: Annotated[list[EndedTrial] | None, Field(json_schema_extra=atomic_list(MOST_TRIALS))] = None
    """The trials that have ended, by number."""
    result: Result | None = None
    """The best trial so far."""
    start_time: Time | None = None
    """When the first trial was created."""
    completion_time: Time | None = None
    """When the sweep ended."""


class OptimizationJob(ApiModel):
    """A sweep: TrainJobs with different parameters, of which the best one is looked for."""

    api_version: str = OPTIMIZATION_JOBS.api_version
    kind: Literal["OptimizationJob"] = "OptimizationJob"
    metadata: ObjectMetadata = Field(default_factory=ObjectMetadata)
    spec: OptimizationJobSpec
    """What to search, and how."""
    status: OptimizationJobStatus | None = None
    """What the sweep has reached; written by the system."""
