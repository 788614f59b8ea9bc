"""What admission says about a training runtime of either kind."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.metadata import ObjectMetadata
from trainer.api.rules import RUNTIME_IMMUTABLE
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, ClusterTrainingRuntime, TrainingRuntime
from trainer.api.trainjob import RuntimeRef, TrainJob, TrainJobSpec
from trainer.framework.plugin_api.errors import CLUSTER_LACKS, INTERNAL
from trainer.framework.plugin_api.review import AdmissionWarning, Review
from trainer.kube.field_errors import OMITTED, FieldError, forbidden, invalid
from trainer.webhooks.advice import advise_on_runtime
from trainer.webhooks.defaults import default_runtime

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trainer.api.trainingruntime import Runtime
    from trainer.framework.pipeline import Pipeline
    from trainer.kube.objects import Object

_TRIAL = "t"
"""Name of the TrainJob that is built on trial: what does not fit with a name of one letter fits with none."""

_NAMES = "spec.template.spec.replicatedJobs"
"""Where a runtime makes names that are too long."""


def review_runtime(obj: Object, old: Object | None, pipeline: Pipeline) -> Review:
    """Everything that keeps all TrainJobs from using a runtime, or that its author should know.

    What the cluster lacks, such as a plugin that serves a policy or the CRD of a scheduler, is only a warning: it is
    installed after runtimes as often as before. The TrainJobs that use the runtime are refused until then.

    Args:
        obj: the TrainingRuntime or ClusterTrainingRuntime with defaults, as it would be stored.
        old: what it replaces; None when it is created.
        pipeline: the plugins.
    """
    if old is not None:
        return Review() if _spec(obj) == _spec(old) else Review.of([invalid("spec", OMITTED, RUNTIME_IMMUTABLE)])
    try:
        runtime = read(obj)
    except InvalidObjectError as error:
        return Review.of(error.errors)
    trial = _on_trial(runtime, pipeline)
    return Review.of([*trial.errors, *trial.warnings, *advise_on_runtime(runtime)])


def read(obj: Object) -> Runtime:
    """A runtime as its author may write it.

    Raises:
        InvalidObjectError: fields are wrong or unknown.
    """
    model: type[Runtime] = (
        ClusterTrainingRuntime if obj.get("kind") == CLUSTER_TRAINING_RUNTIMES.kind else TrainingRuntime
    )
    return model.from_object(obj, strict=True)


def _spec(obj: Object) -> object:
    return default_runtime(obj).get("spec")


def _on_trial(runtime: Runtime, pipeline: Pipeline) -> Review:
    """What a TrainJob without any settings meets; paths as the author of the runtime knows them."""
    ref = RuntimeRef(name=runtime.metadata.name or _TRIAL, kind=runtime.kind)
    metadata = ObjectMetadata(name=_TRIAL, namespace=runtime.metadata.namespace or "default")
    review = pipeline.trial(TrainJob(metadata=metadata, spec=TrainJobSpec(runtime_ref=ref)), runtime)
    prefix = f"{runtime.kind}/{runtime.metadata.name} "
    return Review.of([*_relative_errors(review.errors, prefix), *_relative_warnings(review.warnings, prefix)])


def _relative_errors(errors: Iterable[FieldError], prefix: str) -> Iterator[FieldError | AdmissionWarning]:
    """The errors of the runtime; what a TrainJob can set, such as an image that is missing, is not among them."""
    for error in errors:
        field = error.field.removeprefix(prefix)
        if error.code == CLUSTER_LACKS:
            lack = error.message.removeprefix("Forbidden: ")
            yield AdmissionWarning(field, f"{lack}; TrainJobs that use this runtime are refused until then")
        elif error.reason == INTERNAL or error.field.startswith(prefix):
            yield replace(error, field=field)
        elif error.field == "metadata.name":
            yield forbidden(_NAMES, f"no TrainJob has a name that is short enough: {error.message}")


def _relative_warnings(warnings: Iterable[AdmissionWarning], prefix: str) -> Iterator[AdmissionWarning]:
    """What is said about the settings of a TrainJob is nothing to say about the runtime."""
    for warning in warnings:
        if warning.field.startswith(prefix):
            yield AdmissionWarning(warning.field.removeprefix(prefix), warning.message)
