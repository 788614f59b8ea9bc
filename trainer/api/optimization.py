"""OptimizationJobs and their trials, as rooms beside the sweeps name them (KEP-3562).

A sweep is an OptimizationJob; a trial of it is a TrainJob, with labels, the assignment of its parameters in an
annotation, and one environment variable for each parameter.
"""

from __future__ import annotations

import re
from typing import Final

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

_PREFIX: Final = "KUBEFLOW_TRAINER_OPT_"
_OTHER: Final = re.compile(r"[^A-Z0-9_]")


def variable_of(parameter: str) -> str:
    """The environment variable by which a trial gets a parameter: in capitals, and _ for what names cannot have."""
    return _PREFIX + _OTHER.sub("_", parameter.upper())
