"""OptimizationJobs and their trials, as rooms beside the sweeps name them (KEP-3562).

A sweep is an OptimizationJob; a trial of it is a TrainJob, with labels, the assignment of its parameters in an
annotation, and one environment variable for each parameter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from trainer.api.metric_curve import MetricCurve, number_of
from trainer.kube.objects import Object, find_condition, is_condition_true, mapping_at
from trainer.kube.resource import Resource

OPTIMIZATION_JOBS: Final = Resource("trainer.kubeflow.org", "v2alpha1", "optimizationjobs", "OptimizationJob")

SWEEP_LABEL: Final = "trainer.kubeflow.org/optimization-job"
"""Label of a trial: name of its OptimizationJob."""
TRIAL_LABEL: Final = "trainer.kubeflow.org/optimization-trial"
"""Label of a trial: its number, from 1."""
ASSIGNMENT: Final = "trainer.kubeflow.org/optimization-parameters"
"""Annotation of a trial: its parameters as JSON, a list of `name` and `value`, both texts."""
PRUNED: Final = "trainer.kubeflow.org/optimization-pruned"
"""Annotation of a trial that the sweep has suspended as hopeless: why, for people."""
HELD: Final = "trainer.kubeflow.org/optimization-held"
"""Annotation of a trial that is suspended with its sweep, and will be resumed with it; one that its user has suspended
does not have it."""

MOST_TRIALS: Final = 100
MOST_PARAMETERS: Final = 100
MOST_CHOICES: Final = 100
LONGEST_TEXT: Final = 64
"""Most characters of the name of a parameter, of a bound, and of a choice."""

METRICS: Final = ("evalMetrics", "trainMetrics")
"""Members of `status.trainerStatus` in which the objective is looked for, in this order."""

_PREFIX: Final = "KUBEFLOW_TRAINER_OPT_"
_OTHER: Final = re.compile(r"[^A-Z0-9_]")
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,2}", re.ASCII)


class _Value(msgspec.Struct, frozen=True):
    name: str
    value: str


_ASSIGNMENT: Final = msgspec.json.Decoder(list[_Value])


def variable_of(parameter: str) -> str:
    """The environment variable by which a trial gets a parameter: in capitals, and _ for what names cannot have."""
    return _PREFIX + _OTHER.sub("_", parameter.upper())


def variables_of(assignment: Mapping[str, str]) -> dict[str, str]:
    """The variables by which a trial gets its parameters, with `$` doubled, since Kubernetes expands `$(NAME)`."""
    return {variable_of(name): value.replace("$", "$$") for name, value in assignment.items()}


def environment_of(present: Iterable[Object], assignment: Mapping[str, str]) -> list[Object]:
    """The variables of a template and those of the parameters of a trial.

    One that the template has keeps its place, so that variables behind it can refer to it as $(NAME).
    """
    variables = {name: {"name": name, "value": value} for name, value in variables_of(assignment).items()}
    kept = [variables.pop(str(each.get("name")), each) for each in present]
    return [*kept, *variables.values()]


def trial_name(sweep: str, number: int) -> str:
    """The name of the TrainJob of a trial, so that none is made twice.

    Args:
        sweep: name of the OptimizationJob.
        number: of the trial, from 1.
    """
    return f"{sweep}-trial-{number}"


def trial_number(name: str, sweep: str) -> int | None:
    """The number of the trial whose TrainJob has this name; None if it is none of the sweep's."""
    number = name.removeprefix(f"{sweep}-trial-")
    return int(number) if number != name and _NUMBER.fullmatch(number) else None


def assignment_text(assignment: Mapping[str, str]) -> str:
    """The value of the annotation `ASSIGNMENT`."""
    return msgspec.json.encode([_Value(name, value) for name, value in assignment.items()]).decode()


def assignment_of(annotations: Mapping[str, str]) -> dict[str, str]:
    """The parameters of a trial by its annotations, without those beyond the bounds of the API, which none can have."""
    try:
        values = _ASSIGNMENT.decode(annotations.get(ASSIGNMENT, ""))
    except (msgspec.DecodeError, RecursionError):
        return {}
    bounded = (each for each in values[:MOST_PARAMETERS] if max(len(each.name), len(each.value)) <= LONGEST_TEXT)
    return {each.name: each.value for each in bounded}


def in_words(assignment: Mapping[str, str]) -> str:
    """All parameters in one line, such as `lr=0.01, bs=32`."""
    return ", ".join(f"{name}={value}" for name, value in assignment.items())


def state_of(sweep: Object) -> str | None:
    """The state of an OptimizationJob, also where its CRD keeps none; None before a controller has handled it."""
    for end in ("Failed", "Complete"):
        if is_condition_true(sweep, end):
            return end
    status = mapping_at(sweep, "status")
    if (stated := status.get("state")) and isinstance(stated, str):
        return stated
    if is_condition_true(sweep, "Suspended"):
        return "Suspended"
    if (find_condition(sweep, "Created") or {}).get("status") == "False":
        return "Blocked"
    return "Running" if status.get("conditions") else None


def condition_of(sweep: Object, state: str) -> Object:
    """The condition of an OptimizationJob that explains its state; empty where it has none."""
    return find_condition(sweep, "Created" if state in {"Blocked", "Running"} else state) or {}


def value_of(train_job: Object, curve: MetricCurve, aggregate: str) -> str | None:
    """The value of the objective that a trial has reached: by its curve, else the last one in its status.

    Args:
        train_job: of the trial, in the shape of the model.
        curve: of the objective, on the TrainJob.
        aggregate: which value of the curve counts, Last, Min or Max.
    """
    if curve.points:
        values = [point.value for point in curve.points]
        return values[-1] if aggregate == "Last" else (min if aggregate == "Min" else max)(values, key=number_of)
    for field in METRICS:
        value = mapping_at(train_job, "status", "trainerStatus", field).get(curve.metric)
        if isinstance(value, str):
            return value
    return None
