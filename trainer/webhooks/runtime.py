"""Validates a training runtime of either kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.labels import ANCESTOR_LABEL
from trainer.api.metadata import ObjectMetadata
from trainer.api.rules import RUNTIME_IMMUTABLE
from trainer.api.trainingruntime import (
    CLUSTER_TRAINING_RUNTIMES,
    DEPRECATED,
    SUPPORT_LABEL,
    ClusterTrainingRuntime,
    Runtime,
    TrainingRuntime,
)
from trainer.api.trainjob import RuntimeRef, TrainJob, TrainJobSpec
from trainer.framework.building.trainer_step import stated_ancestor
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.errors import CLUSTER_LACKS, INTERNAL, AdmissionWarning, Review
from trainer.framework.plugin_api.runtime_info import Ancestor
from trainer.kube.field_errors import OMITTED, FieldError, forbidden, invalid
from trainer.kube.objects import Object
from trainer.webhooks.defaults import default_runtime

_TRIAL = "t"
"""Name of the TrainJob of the trial build: what is too long with one letter is too long with every name."""

_NAMES = "spec.template.spec.replicatedJobs"
"""Path for names of objects that are too long."""


def review_runtime(obj: Object, old: Object | None, pipeline: Pipeline) -> Review:
    """Errors that no TrainJob can avoid, and warnings for the author.

    A missing plugin or CRD of a scheduler is only a warning, since either may be installed after the runtime. TrainJobs
    that use the runtime are refused until then.
    """
    if old is not None:
        return Review() if _spec(obj) == _spec(old) else Review.of([invalid("spec", OMITTED, RUNTIME_IMMUTABLE)])
    try:
        runtime = read(obj)
    except InvalidObjectError as error:
        return Review.of(error.errors)
    trial = _on_trial(runtime, pipeline)
    return Review.of([*trial.errors, *trial.warnings, *_warnings(runtime)])


def read(obj: Object) -> Runtime:
    """A runtime as its author may write it."""
    model: type[Runtime] = (
        ClusterTrainingRuntime if obj.get("kind") == CLUSTER_TRAINING_RUNTIMES.kind else TrainingRuntime
    )
    return model.from_object(obj, strict=True)


def _spec(obj: Object) -> object:
    return default_runtime(obj).get("spec")


def _on_trial(runtime: Runtime, pipeline: Pipeline) -> Review:
    ref = RuntimeRef(name=runtime.metadata.name or _TRIAL, kind=runtime.kind)
    metadata = ObjectMetadata(name=_TRIAL, namespace=runtime.metadata.namespace or "default")
    review = pipeline.trial(TrainJob(metadata=metadata, spec=TrainJobSpec(runtime_ref=ref)), runtime)
    # A TrainJob can avoid a warning about its own settings.
    warnings = [AdmissionWarning(each.path, each.message) for each in review.warnings if each.origin]
    return Review.of([*(found for error in review.errors for found in _of_runtime(error)), *warnings])


def _of_runtime(error: FieldError) -> Iterator[FieldError | AdmissionWarning]:
    """The error of the runtime that an error on trial shows; None if a TrainJob can avoid it, as a missing image."""
    if error.code == CLUSTER_LACKS:
        yield AdmissionWarning(error.path, f"{error.detail}; no TrainJob can run on this runtime until then")
    elif error.origin or error.reason == INTERNAL:
        yield replace(error, field=error.path, origin="")
    elif error.field == "metadata.name":
        yield forbidden(_NAMES, f"no TrainJob has a name that is short enough: {error.message}")


def _warnings(runtime: Runtime) -> Iterator[AdmissionWarning]:
    if is_deprecated(runtime):
        text = "TrainJobs that use this runtime are warned that it is deprecated"
        yield AdmissionWarning(f"metadata.labels[{SUPPORT_LABEL}]", text)
    for index, job in enumerate(runtime.spec.template.spec.replicated_jobs or []):
        ancestor = stated_ancestor(job)
        if ancestor is not None and ancestor not in set(Ancestor):
            path = f"spec.template.spec.replicatedJobs[{index}].template.metadata.labels[{ANCESTOR_LABEL}]"
            yield AdmissionWarning(path, f"there is no step {ancestor!r}; known steps: {', '.join(Ancestor)}")


def is_deprecated(runtime: Runtime) -> bool:
    """Whether TrainJobs that use the runtime are warned."""
    return (runtime.metadata.labels or {}).get(SUPPORT_LABEL) == DEPRECATED
