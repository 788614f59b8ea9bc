"""Converts an Experiment, see `convert_experiment`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from trainer.api import patterns
from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.field_errors import FieldError, invalid, required
from trainer.kube.objects import Object, mapping_at, metadata_of
from trainer.v1alpha1.discovery import Version
from trainer_v1_jobs.conversion.source import without_nulls
from trainer_v1_jobs.katib.experiment import Experiment
from trainer_v1_jobs.katib.findings import Findings
from trainer_v1_jobs.katib.metrics import check_metrics
from trainer_v1_jobs.katib.parameters import parameters_of, size_of
from trainer_v1_jobs.katib.search import algorithm_of, check_rest, counts_of, objective_of, prune_algorithm_of
from trainer_v1_jobs.katib.trials import Trials, trials_of

_LONGEST_NAME: Final = 40
"""Of an Experiment."""
_KEPT_METADATA: Final = ("name", "generateName", "namespace", "labels", "annotations")
_IDENTITY: Final = ("name", "generateName", "namespace")
_FINALIZER: Final = "update-prometheus-metrics"
"""Katib's own."""


@dataclass(frozen=True, slots=True)
class KatibConversion:
    """A converted Experiment, in the shape of the version that it was converted for."""

    optimization_job: Object
    runtime: Object | None
    """The TrainingRuntime that was written for its trials; None if there is one that says the same."""
    findings: tuple[FieldError, ...]
    """What is lost: the field, as a path in the Experiment, and what to do instead."""


def convert_experiment(
    obj: Object, *, version: Version = "v2alpha1", runtimes: Iterable[Object] = ()
) -> KatibConversion:
    """An Experiment as an OptimizationJob that searches the same.

    Args:
        obj: the Experiment; it is not changed.
        version: that the cluster serves. Default: v2alpha1.
        runtimes: ClusterTrainingRuntimes that the cluster has, in the shape of v2alpha1; the first that says what
            trials need is used. Default: none, so that a runtime is written.

    Raises:
        InvalidObjectError: it is wrong, or something of it cannot be converted; the message has a line for each field.
    """
    status, obj = mapping_at(obj, "status"), without_nulls({name: obj[name] for name in obj if name != "status"})
    experiment = Experiment.from_object(obj, strict=True)
    spec, findings, metadata = experiment.spec, Findings(), metadata_of(obj)
    _check_metadata(metadata, status, findings)
    check_rest(spec, findings)
    objective = objective_of(spec.objective, findings)
    check_metrics(spec, findings)
    search = algorithm_of(spec.algorithm, findings)
    algorithm = next(iter(search), "random")
    prune = prune_algorithm_of(spec.early_stopping, findings)
    parameters = parameters_of(spec.parameters or [], algorithm, findings)
    counts = counts_of(spec, size_of(parameters) if algorithm == "grid" else None, findings)
    identity: Object = {name: metadata[name] for name in _IDENTITY if name in metadata}
    names = [each.name for each in spec.parameters or []]
    trials = trials_of(
        spec.trial_template, findings, parameters=names, metadata=identity, version=version, runtimes=runtimes
    )
    findings.check(f"Experiment {experiment.metadata.name or experiment.metadata.generate_name}")
    assert trials is not None, "who refuses the job says so"
    fields = {"objectives": [objective], "searchAlgorithm": search}
    fields |= {"pruneAlgorithm": prune} if prune is not None else {}
    fields |= {"parameters": parameters} | counts | {"trainJobTemplate": _template(trials)}
    optimization_job = {
        "apiVersion": f"{OPTIMIZATION_JOBS.group}/{version}",
        "kind": OPTIMIZATION_JOBS.kind,
        "metadata": {name: metadata[name] for name in _KEPT_METADATA if metadata.get(name)},
        "spec": fields,
    }
    return KatibConversion(optimization_job, trials.runtime, tuple(findings.losses.found))


def first_trial(optimization_job: Object) -> Object:
    """The TrainJob of a trial, without its parameters."""
    metadata, template = metadata_of(optimization_job), mapping_at(optimization_job, "spec", "trainJobTemplate")
    name = metadata.get("name") or str(metadata.get("generateName", "")).rstrip("-.")
    own = {"name": f"{name}-trial-1"} | {each: metadata[each] for each in ("namespace",) if each in metadata}
    return {
        "apiVersion": optimization_job["apiVersion"],
        "kind": TRAIN_JOBS.kind,
        "metadata": mapping_at(template, "metadata") | own,
        "spec": mapping_at(template, "spec"),
    }


def _template(trials: Trials) -> Object:
    metadata = {name: value for name, value in metadata_of(trials.train_job).items() if name not in _IDENTITY and value}
    return ({"metadata": metadata} if metadata else {}) | {"spec": trials.train_job["spec"]}


def _check_metadata(metadata: Object, status: Object, findings: Findings) -> None:
    name = metadata.get("name")
    if not name and not metadata.get("generateName"):
        findings.refuse(required("metadata.name"))
    elif name and (len(name) > _LONGEST_NAME or not patterns.compiled(patterns.HOST_LABEL).search(name)):
        rule = f"{patterns.WORDS[patterns.HOST_LABEL]}; at most {_LONGEST_NAME} of them"
        findings.refuse(invalid("metadata.name", name, rule))
    if [each for each in metadata.get("finalizers") or [] if each != _FINALIZER]:
        findings.lose("metadata.finalizers", "is left out: who put it there does not know OptimizationJobs")
    if metadata.get("ownerReferences"):
        findings.lose("metadata.ownerReferences", "is left out: its owner makes Experiments")
    if status.get("trials"):
        rule = "is left out, with all that has run: the OptimizationJob begins with its first trial"
        findings.lose("status", rule)
