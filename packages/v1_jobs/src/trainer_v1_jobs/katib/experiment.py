"""Experiments of Katib (`kubeflow.org/v1beta1`), as its webhook reads them."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from trainer.api.metadata import ObjectMetadata
from trainer.api.model import ApiModel, Count, Int32, JsonObject, list_map, set_list

_Text: TypeAlias = Annotated[str, Field(max_length=4096)]
_Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=253)]
_Value: TypeAlias = Annotated[str, Field(max_length=64)]
"""A bound, a step or a choice: an OptimizationJob has no longer ones."""


class FeasibleSpace(ApiModel):
    """The values of a parameter."""

    min: _Value | None = None
    """Least value of a number."""
    max: _Value | None = None
    """Greatest value of a number."""
    step: _Value | None = None
    """Difference of two values of a number."""
    choices: Annotated[list[_Value] | None, Field(alias="list", json_schema_extra=set_list(1000))] = None
    """The values of a parameter that is no number."""
    distribution: Literal["", "uniform", "logUniform", "normal", "logNormal", "unknown"] | None = None
    """How likely the values of a number are. Defaults to uniform."""


class Parameter(ApiModel):
    """A parameter."""

    name: _Name
    """Its name."""
    parameter_type: Literal["double", "int", "categorical", "discrete"]
    """What its values are."""
    feasible_space: FeasibleSpace
    """Its values."""


class MetricStrategy(ApiModel):
    """How one value is made of those that a trial reports."""

    name: _Name
    """The metric."""
    value: Literal["min", "max", "latest"]
    """Which of its values counts."""


class Objective(ApiModel):
    """What the Experiment optimizes."""

    type: Literal["minimize", "maximize"]
    """What is better."""
    goal: float | None = None
    """The value with which the Experiment ends."""
    objective_metric_name: Annotated[str, Field(min_length=1, max_length=64)]
    """The metric."""
    additional_metric_names: Annotated[list[_Text] | None, Field(json_schema_extra=set_list(100))] = None
    """Further metrics to collect."""
    metric_strategies: Annotated[list[MetricStrategy] | None, Field(json_schema_extra=list_map("name", 100))] = None
    """How values of trials are made. Defaults to the best of all values."""


class Setting(ApiModel):
    """A setting of an algorithm."""

    name: _Name
    """Its name."""
    value: _Text = ""
    """Its value."""


class Algorithm(ApiModel):
    """How parameters are chosen, or trials are stopped."""

    algorithm_name: _Name
    """Its name."""
    algorithm_settings: Annotated[list[Setting] | None, Field(json_schema_extra=list_map("name", 100))] = None
    """Its settings."""


class TrialParameter(ApiModel):
    """What takes the place of `${trialParameters.NAME}` in the template."""

    name: _Name
    """Its name there."""
    description: _Text | None = None
    """What it is, for people."""
    reference: _Name
    """The parameter, or `${trialSpec.Name}` and the like."""


class ConfigMapSource(ApiModel):
    """Where a template is that the Experiment does not have itself."""

    config_map_name: _Text | None = None
    """Name of the ConfigMap."""
    config_map_namespace: _Text | None = None
    """Its namespace."""
    template_path: _Text | None = None
    """The key with the template."""


class TrialTemplate(ApiModel):
    """The job of each trial."""

    retain: bool | None = None
    """Whether jobs stay after their end."""
    trial_spec: JsonObject | None = None
    """The job."""
    config_map: ConfigMapSource | None = None
    """Where the job is, if it is not here."""
    trial_parameters: Annotated[list[TrialParameter] | None, Field(json_schema_extra=list_map("name", 200))] = None
    """What differs in the jobs of two trials."""
    primary_pod_labels: Annotated[dict[str, str] | None, Field(json_schema_extra={"maxProperties": 64})] = None
    """Labels of the pods whose metrics are collected."""
    primary_container_name: _Text | None = None
    """The container that trains."""
    success_condition: _Text | None = None
    """When a job has succeeded, in the language of GJSON."""
    failure_condition: _Text | None = None
    """When it has failed."""


class Collector(ApiModel):
    """What collects metrics."""

    kind: Literal["StdOut", "File", "TensorFlowEvent", "PrometheusMetric", "Custom", "Push", "None"] | None = None
    """Its kind. Defaults to StdOut."""
    custom_collector: JsonObject | None = None
    """A container of the author."""


class MetricsCollectorSpec(ApiModel):
    """How metrics are collected."""

    collector: Collector | None = None
    """What collects them."""
    source: JsonObject | None = None
    """Where they are."""


class ExperimentSpec(ApiModel):
    """The desired Experiment."""

    parameters: Annotated[list[Parameter] | None, Field(json_schema_extra=list_map("name", 1000))] = None
    """The parameters."""
    objective: Objective
    """What is optimized."""
    algorithm: Algorithm
    """How parameters are chosen."""
    early_stopping: Algorithm | None = None
    """How trials are stopped."""
    trial_template: TrialTemplate
    """The job of each trial."""
    parallel_trial_count: Annotated[Int32, Field(ge=1)] | None = None
    """Most trials at once. Defaults to 3."""
    max_trial_count: Annotated[Int32, Field(ge=1)] | None = None
    """Trials after which it ends. Defaults to none, so that it ends by its goal."""
    max_failed_trial_count: Count | None = None
    """The failed trials with which it has failed. Defaults to no limit."""
    metrics_collector_spec: MetricsCollectorSpec | None = None
    """How metrics are collected."""
    nas_config: JsonObject | None = None
    """The search of an architecture of a neural network."""
    resume_policy: Literal["", "Never", "LongRunning", "FromVolume"] | None = None
    """Whether more trials can be asked for after its end. Defaults to Never."""


class Experiment(ApiModel):
    """A search of Katib."""

    api_version: Literal["kubeflow.org/v1beta1"] = "kubeflow.org/v1beta1"
    kind: Literal["Experiment"] = "Experiment"
    metadata: ObjectMetadata = Field(default_factory=ObjectMetadata)
    spec: ExperimentSpec
    """The desired search."""
