"""What admission says about a training runtime of either kind."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.metadata import ObjectMetadata
from trainer.api.rules import RUNTIME_IMMUTABLE
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, ClusterTrainingRuntime, TrainingRuntime
from trainer.api.trainjob import RuntimeRef, TrainJob, TrainJobSpec
from trainer.framework.extension_points import EnforceMLPolicy, EnforcePodGroupPolicy
from trainer.framework.review import AdmissionWarning, Review
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

_INTERNAL = "InternalError"
"""Reason of an error that is not the author's: a plugin has raised."""

_POLICY = re.compile(r"spec\.(mlPolicy|podGroupPolicy)\.[A-Za-z]+")
"""Path of a policy as a whole: what forbids that is not its settings, but something that this cluster lacks."""

_FORBIDDEN = "Forbidden: "


def review_runtime(obj: Object, old: Object | None, pipeline: Pipeline) -> Review:
    """Everything that keeps all TrainJobs from using a runtime, or that its author should know.

    A policy that no plugin serves, or for which the cluster lacks a kind, is only a warning: plugins and schedulers are
    installed after runtimes as often as before. The TrainJobs that use it are refused until then.

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
    unserved = list(_unserved(runtime, pipeline))
    trial = Review() if unserved else _on_trial(runtime, pipeline)
    return Review.of([*trial.errors, *trial.warnings, *unserved, *advise_on_runtime(runtime)])


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


def _unserved(runtime: Runtime, pipeline: Pipeline) -> Iterator[AdmissionWarning]:
    served = {
        "mlPolicy": frozenset().union(
            *(p.ml_policy_sources for p in pipeline.plugins if isinstance(p, EnforceMLPolicy))
        ),
        "podGroupPolicy": frozenset().union(
            *(p.pod_group_policy_sources for p in pipeline.plugins if isinstance(p, EnforcePodGroupPolicy))
        ),
    }
    wanted = {"mlPolicy": runtime.spec.ml_policy, "podGroupPolicy": runtime.spec.pod_group_policy}
    for field, policy in wanted.items():
        source = policy.source if policy is not None else None
        if source is not None and source not in served[field]:
            text = "no plugin of the controller manager serves it; TrainJobs that use this runtime are refused"
            yield AdmissionWarning(f"spec.{field}.{source}", text)


def _on_trial(runtime: Runtime, pipeline: Pipeline) -> Review:
    """What a TrainJob without any settings meets; paths as the author of the runtime knows them."""
    ref = RuntimeRef(name=runtime.metadata.name or _TRIAL, kind=runtime.kind)
    metadata = ObjectMetadata(name=_TRIAL, namespace=runtime.metadata.namespace or "default")
    review = pipeline.review(TrainJob(metadata=metadata, spec=TrainJobSpec(runtime_ref=ref)), runtime)
    prefix = f"{runtime.kind}/{runtime.metadata.name} "
    return Review.of([*_relative_errors(review.errors, prefix), *_relative_warnings(review.warnings, prefix)])


def _relative_errors(errors: Iterable[FieldError], prefix: str) -> Iterator[FieldError | AdmissionWarning]:
    """What a TrainJob could mend, such as an image that is missing, is no error of the runtime."""
    for error in errors:
        field = error.field.removeprefix(prefix)
        if error.message.startswith(_FORBIDDEN) and _POLICY.fullmatch(field):
            lack = error.message.removeprefix(_FORBIDDEN)
            yield AdmissionWarning(field, f"{lack}; TrainJobs that use this runtime are refused until then")
        elif error.reason == _INTERNAL or error.field.startswith(prefix):
            yield FieldError(field, error.message, error.reason)
        elif error.field == "metadata.name":
            detail = error.message.partition(f'"{_TRIAL}": ')[2]
            yield forbidden(_NAMES, f"even the name of one letter, {_TRIAL}, {detail}")


def _relative_warnings(warnings: Iterable[AdmissionWarning], prefix: str) -> Iterator[AdmissionWarning]:
    """What is said about the settings of a TrainJob is nothing to say about the runtime."""
    for warning in warnings:
        if warning.field.startswith(prefix):
            yield AdmissionWarning(warning.field.removeprefix(prefix), warning.message)
