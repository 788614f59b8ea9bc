"""Makes the TrainJob of a trial."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Final

from trainer.api.kueue import QUEUE_LABEL
from trainer.api.metric_curve import CURVE, CURVE_OF
from trainer.api.optimization import (
    ASSIGNMENT,
    HELD,
    PRUNED,
    SWEEP_LABEL,
    TRIAL_LABEL,
    assignment_text,
    environment_of,
    trial_name,
)
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.objects import Object, controller_reference, labels_of, mapping_at, name_of, namespace_of, objects_in
from trainer.v1alpha1.discovery import Version
from trainer_sweeps.api.optimizationjob import OptimizationJobSpec, TrialMetadata

PRIORITY_LABEL: Final = "kueue.x-k8s.io/priority-class"
"""Label by which Kueue finds the priority of a job in its queue."""
_OF_QUEUE: Final = (QUEUE_LABEL, PRIORITY_LABEL)
_OF_ONE_TRIAL: Final = (CURVE, HELD, PRUNED)
"""Annotations that a trial gets while it runs, which one that is copied into a template has."""


def train_job_of(
    obj: Object, sweep: OptimizationJobSpec, number: int, assignment: Mapping[str, str], version: Version
) -> Object:
    """The TrainJob of a trial, as it is to be created.

    Its program gets each parameter as an environment variable. The queue of Kueue that the OptimizationJob names is
    that of each trial, unless the template names one.

    Args:
        obj: the OptimizationJob, which will own it.
        sweep: its spec.
        number: of the trial, from 1.
        assignment: the value of each parameter.
        version: of the TrainJobs that the cluster serves, in which the template is written.
    """
    template = sweep.train_job_template.metadata or TrialMetadata()
    labels, spec = dict(template.labels or {}), deepcopy(sweep.train_job_template.spec)
    annotations = {name: value for name, value in (template.annotations or {}).items() if name not in _OF_ONE_TRIAL}
    queue = {name: value for name, value in labels_of(obj).items() if name in _OF_QUEUE}
    if version == "v1alpha1":
        labels = queue | labels
    elif queue:  # Kueue knows no TrainJobs of this version, and queues their JobSets
        spec["labels"] = queue | mapping_at(spec, "labels")
    trainer = mapping_at(spec, "trainer")
    spec["trainer"] = trainer | {"env": environment_of(objects_in(trainer.get("env")), assignment)}
    own = {ASSIGNMENT: assignment_text(assignment), CURVE_OF: sweep.objectives[0].metric}
    return {
        "apiVersion": f"{TRAIN_JOBS.group}/{version}",
        "kind": TRAIN_JOBS.kind,
        "metadata": {
            "name": trial_name(name_of(obj), number),
            "namespace": namespace_of(obj),
            "labels": labels | {SWEEP_LABEL: name_of(obj), TRIAL_LABEL: str(number)},
            "annotations": annotations | own,
            "ownerReferences": [controller_reference(obj)],
        }
        | ({"finalizers": template.finalizers} if template.finalizers else {}),
        "spec": spec,
    }


def is_queued(train_job: Object) -> bool:
    """Whether a trial is in a queue of Kueue, in either version."""
    return QUEUE_LABEL in labels_of(train_job) or QUEUE_LABEL in mapping_at(train_job, "spec", "labels")
