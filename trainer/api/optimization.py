"""OptimizationJobs and their trials, as rooms beside the sweeps name them (KEP-3562).

A sweep is an OptimizationJob; a trial of it is a TrainJob, with labels, the assignment of its parameters in an
annotation, and one environment variable for each parameter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

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
    """The parameters of a trial by its annotations, within the bounds of the API; empty where they cannot be read."""
    try:
        values = _ASSIGNMENT.decode(annotations.get(ASSIGNMENT, ""))
    except (msgspec.DecodeError, RecursionError):
        return {}
    return {each.name[:LONGEST_TEXT]: each.value[:LONGEST_TEXT] for each in values[:MOST_PARAMETERS]}


def in_words(assignment: Mapping[str, str]) -> str:
    """All parameters in one line, such as `lr=0.01, bs=32`."""
    return ", ".join(f"{name}={value}" for name, value in assignment.items())
