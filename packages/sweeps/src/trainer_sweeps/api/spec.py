"""The spec of an OptimizationJob (KEP-3562), with its rules as CEL.

Fields, defaults, bounds and texts of rules that Kubeflow Trainer (Go) has are the same as there; its CRD stays usable.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field

from trainer.api import patterns, rules
from trainer.api.metadata import TemplateMetadata
from trainer.api.model import ApiModel, Count, Int32, Int64, JsonObject, list_map, set_list, text
from trainer.api.optimization import LONGEST_TEXT, MOST_CHOICES, MOST_PARAMETERS, MOST_TRIALS

ONE_OBJECTIVE: Final = (
    "only one objective can be optimized: name the metric that decides, and let trials report others beside it"
)
IMMUTABLE: Final = (
    "OptimizationJobSpec is immutable and cannot be updated after creation, except suspend and "
    "ttlSecondsAfterFinished: delete it and submit it again, or submit another one"
)
PARALLEL_TRIALS: Final = "parallelTrials cannot exceed numTrials"
GRID_CHOICES: Final = "Grid search requires all parameters to be Categorical; Uniform and LogUniform are not supported."
LESS_THAN_MAX: Final = "min must be strictly less than max"
GREATER_THAN_ZERO: Final = "min must be strictly greater than 0"
NO_NAME: Final = "name and namespace cannot be set in a template."
NO_TIME_TO_LIVE: Final = (
    "cannot be set: a trial that is deleted before its value is known runs again; ttlSecondsAfterFinished of the sweep "
    "deletes it with its trials"
)

_MOST_OBJECTIVES: Final = 16
"""More than one, so that a rule can say why there can be only one."""
_FIXED: Final = ("objectives", "searchAlgorithm", "parameters", "numTrials", "parallelTrials", "trainJobTemplate")
"""Members of the spec that are always there, as they are required or have a default."""
_FIXED_OPTIONAL: Final = ("pruneAlgorithm", "maxFailedTrials")


def exactly_one(names: tuple[str, ...]) -> str:
    """The text of the rule that exactly one of these fields is set."""
    return f"exactly one of the fields in [{' '.join(names)}] must be set"


def _exactly_one(*names: str) -> ConfigDict:
    present = ",".join(f"has(self.{name})" for name in names)
    rule = f"[{present}].filter(x,x==true).size() == 1"
    return ConfigDict(json_schema_extra=rules.cel_rules(rules.cel_rule(rule, exactly_one(names))))


def _unchanged() -> str:
    fixed = [f"self.{name} == oldSelf.{name}" for name in _FIXED]
    optional = [
        f"has(self.{name}) == has(oldSelf.{name}) && (!has(self.{name}) || self.{name} == oldSelf.{name})"
        for name in _FIXED_OPTIONAL
    ]
    return " && ".join([*fixed, *optional])


# A rule on the field itself: the word `namespace` is reserved in CEL, and API servers differ in how it is escaped.
_NEVER: Final = rules.cel_rules(rules.cel_rule("false", NO_NAME))
_MIN_BELOW_MAX: Final = rules.cel_rule("double(self.min) < double(self.max)", LESS_THAN_MAX)
_Number = Annotated[
    str, Field(min_length=1, max_length=LONGEST_TEXT, json_schema_extra=text(pattern=patterns.DECIMAL_NUMBER))
]
Text = Annotated[str, Field(max_length=LONGEST_TEXT)]
"""A value of a parameter."""
Name = Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT)]
"""Name of a metric or parameter."""


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

    metric: Name
    """Name of the metric that the trials report, such as val_loss."""
    direction: Literal[Direction.MAXIMIZE, Direction.MINIMIZE] = Direction.MINIMIZE
    """Whether a greater or a smaller value is better."""
    aggregate: Literal[Aggregate.LAST, Aggregate.MIN, Aggregate.MAX] = Aggregate.LAST
    """How the value of a trial is made of its curve."""


class Interval(ApiModel):
    """Numbers between two bounds, both included."""

    model_config = ConfigDict(json_schema_extra=rules.cel_rules(_MIN_BELOW_MAX))

    min: _Number
    """Least value."""
    max: _Number
    """Greatest value."""
    type: Literal["Int", "Float"] = "Float"
    """Whether values are integers."""


class PositiveInterval(Interval):
    """Positive numbers between two bounds, both included."""

    model_config = ConfigDict(
        json_schema_extra=rules.cel_rules(rules.cel_rule("double(self.min) > 0.0", GREATER_THAN_ZERO), _MIN_BELOW_MAX)
    )


class Categorical(ApiModel):
    """Texts to choose one from."""

    choices: Annotated[list[Text], Field(json_schema_extra=set_list(MOST_CHOICES, 1))]
    """The texts."""


class SearchSpace(ApiModel):
    """The values of a parameter; exactly one of the fields is set."""

    model_config = _exactly_one("uniform", "logUniform", "categorical")

    uniform: Interval | None = None
    """Numbers, each as likely as any other."""
    log_uniform: PositiveInterval | None = None
    """Positive numbers, each order of magnitude as likely as any other."""
    categorical: Categorical | None = None
    """Texts, each as likely as any other."""


class Parameter(ApiModel):
    """A parameter of the training."""

    name: Name
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

    model_config = _exactly_one("random", "grid", "tpe", "gp", "cmaEs")

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

    model_config = _exactly_one("median", "asha")

    median: MedianPruning | None = None
    """By the median of the other trials."""
    asha: AshaPruning | None = None
    """By successive halving."""


class TrialMetadata(TemplateMetadata):
    """Metadata of the trials, whose names and namespace are given."""

    name: Annotated[str, Field(json_schema_extra=_NEVER)] | None = None
    """Must be left out: a trial is called by its sweep and its number."""
    namespace: Annotated[str, Field(json_schema_extra=_NEVER)] | None = None
    """Must be left out: trials are in the namespace of their sweep."""
    finalizers: list[str] | None = None
    """Finalizers of the trials."""


class TrainJobTemplate(ApiModel):
    """The TrainJob of each trial."""

    metadata: TrialMetadata | None = None
    """Labels and annotations of the trials."""
    spec: JsonObject
    """Spec of the trials, a TrainJobSpec of the version that the cluster serves."""


class OptimizationJobSpec(ApiModel):
    """What to search, and how; nothing but suspend and ttlSecondsAfterFinished can be changed."""

    model_config = ConfigDict(
        json_schema_extra=rules.cel_rules(
            rules.cel_rule(_unchanged(), IMMUTABLE),
            rules.cel_rule("self.parallelTrials <= self.numTrials", PARALLEL_TRIALS),
            rules.cel_rule(
                "!has(self.searchAlgorithm.grid) || self.parameters.all(p, has(p.searchSpace.categorical))",
                GRID_CHOICES,
            ),
        )
    )

    objectives: Annotated[
        list[Objective],
        Field(
            json_schema_extra=list_map("metric", _MOST_OBJECTIVES)
            | {"minItems": 1}
            | rules.cel_rules(rules.cel_rule("self.size() == 1", ONE_OBJECTIVE))
        ),
    ]
    """The metric to optimize; there can be only one."""
    search_algorithm: Annotated[SearchAlgorithm, Field(json_schema_extra={"default": {"random": {}}})] = (
        SearchAlgorithm(random=Random())
    )
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
