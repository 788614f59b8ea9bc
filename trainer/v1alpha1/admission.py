"""Admission of TrainJobs and runtimes of v1alpha1, by the rules of Kubeflow Trainer (Go) and in its words.

What it refuses is refused with 403 and the same text. What it accepts is accepted; where a trial build
shows that it cannot become Jobs, its author is warned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any, ClassVar, Final

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.jobset import ReplicatedJob
from trainer.api.labels import ANCESTOR_LABEL
from trainer.api.metadata import ObjectMetadata
from trainer.api.trainingruntime import (
    CLUSTER_TRAINING_RUNTIMES,
    DEPRECATED,
    FRAMEWORK_LABEL,
    SUPPORT_LABEL,
    TRAINING_RUNTIMES,
    Runtime,
)
from trainer.api.trainjob import TRAIN_JOBS, RuntimeRef, TrainJob, TrainJobSpec
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.errors import AdmissionWarning, BuildError, Review
from trainer.framework.runtimes.runtimes import RuntimeNotFoundError, RuntimeSource
from trainer.framework.status.status import has_ended
from trainer.kube.clock import Clock, timestamp
from trainer.kube.field_errors import FieldError, invalid, required
from trainer.kube.metrics import Metrics
from trainer.kube.objects import Object, is_being_deleted, labels_of, mapping_at, name_of, namespace_of, objects_in
from trainer.kube.webhook.admission import AdmissionRequest, AdmissionResponse, Operation
from trainer.v1alpha1.client import SERVED, decoded
from trainer.v1alpha1.decode import is_larger_than_the_model, override_paths
from trainer.v1alpha1.policies import HasPriorityClass, ignored, policy_errors, priority_errors
from trainer.v1alpha1.profile import NODE
from trainer.v1alpha1.runtime_patches import change_errors, containers_of, manager_errors, name_errors, with_times
from trainer.webhooks.handlers import AdmissionHandlers, changed, placed
from trainer.webhooks.runtime import review_runtime as review_model

_GROUP: Final = TRAIN_JOBS.group
_INITIALIZERS: Final = {"dataset": "dataset-initializer", "model": "model-initializer"}
_MAIN_CONTAINERS: Final = {step: step for step in _INITIALIZERS.values()} | {"trainer": NODE}
"""The container that a Job with this ancestor must have."""
_MOST_WARNINGS: Final = 10
_MOST_ERRORS: Final = 50
_LONGEST_TEXT: Final = 2000
"""Characters of an error; it may repeat a value."""


class V1Alpha1Admission(AdmissionHandlers):
    """Admits TrainJobs and runtimes of v1alpha1.

    Args:
        pipeline: the plugins.
        runtimes: finds the runtimes of TrainJobs.
        clock: for the times of runtime patches.
        metrics: see `AdmissionHandlers`. Defaults to none.
        has_priority_class: looks for the PriorityClasses of gangs. Defaults to not looking for them.
    """

    resources: ClassVar = tuple(SERVED.values())

    def __init__(
        self,
        pipeline: Pipeline,
        runtimes: RuntimeSource,
        clock: Clock,
        *,
        metrics: Metrics | None = None,
        has_priority_class: HasPriorityClass | None = None,
    ) -> None:
        super().__init__(pipeline, runtimes, metrics=metrics)
        self._clock = clock
        self._has_priority_class = has_priority_class

    async def default_train_job(self, request: AdmissionRequest) -> AdmissionResponse:
        """Set the times of runtime patches; all other defaults are in the schema."""
        if request.object is None or request.subresource:
            return AdmissionResponse.allow()
        return changed(request.object, with_times(request.object, request.old_object, timestamp(self._clock.now())))

    async def default_runtime(self, request: AdmissionRequest) -> AdmissionResponse:  # noqa: ARG002 - see AdmissionHandlers
        """Nothing: the defaults of a runtime are in the schema."""
        return AdmissionResponse.allow()

    async def validate_train_job(self, request: AdmissionRequest) -> AdmissionResponse:
        """Refuse what Kubeflow Trainer (Go) refuses, and warn of what cannot be built."""
        if request.object is None or request.subresource:
            return AdmissionResponse.allow()
        obj, must_exist = placed(request.object, request), request.operation is Operation.CREATE
        review = await review_train_job(
            obj,
            request.old_object,
            self._pipeline,
            self._runtimes,
            must_exist=must_exist,
            has_priority_class=self._has_priority_class,
        )
        return _response(review)

    async def validate_runtime(self, request: AdmissionRequest) -> AdmissionResponse:
        """Refuse what Kubeflow Trainer (Go) refuses, and warn of what no TrainJob can be built on."""
        if request.object is None or request.subresource:
            return AdmissionResponse.allow()
        if request.old_object is not None and request.old_object.get("spec") == request.object.get("spec"):
            return AdmissionResponse.allow()  # also where an earlier release has let in more, so that it can be deleted
        return _response(review_runtime(placed(request.object, request), self._pipeline))


async def review_train_job(
    obj: Object,
    old: Object | None,
    pipeline: Pipeline,
    runtimes: RuntimeSource,
    *,
    must_exist: bool,
    has_priority_class: HasPriorityClass | None = None,
) -> Review:
    """Errors for which Kubeflow Trainer (Go) refuses a TrainJob of v1alpha1, and warnings of what cannot be built.

    Args:
        obj: the TrainJob, with its kind and namespace.
        old: what it replaces.
        pipeline: the plugins.
        runtimes: finds the runtime.
        must_exist: whether a missing runtime or PriorityClass is an error, as at the creation; else it is a warning,
            unless a new TrainJob has probably mistyped the name.
        has_priority_class: looks for PriorityClasses. Defaults to not looking for them.
    """
    ref = mapping_at(obj, "spec", "runtimeRef")
    # Defaults are for what is absent: an empty text is none.
    kind = CLUSTER_TRAINING_RUNTIMES.kind if ref.get("kind") is None else ref["kind"]
    group = _GROUP if ref.get("apiGroup") is None else ref["apiGroup"]
    if (kind, group) not in ((each.kind, _GROUP) for each in (TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES)):
        return Review((FieldError("", f"unsupported runtime: {kind}.{group}".removesuffix(".")),))
    if not ref.get("name"):
        return Review((required("spec.runtimeRef.name"),))
    errors, model = (*manager_errors(obj), *change_errors(obj, old)), decoded(obj)
    try:
        runtime = await runtimes.of(_reference(model))
    except RuntimeNotFoundError as error:
        words = f"specified {kind[0].lower()}{kind[1:]} must be created before the TrainJob is created"
        text = f"{kind} {error.key.name} not found: {words}{error.present.hint(error.key.name)}"
        if must_exist or (old is None and error.present.is_mistake):
            return Review((*errors, invalid("spec.runtimeRef", ref, text)))
        # A runtime may go once a TrainJob was built on it; the TrainJob can still be suspended and labelled.
        return Review(errors, (AdmissionWarning("", text),))
    except BuildError as error:
        return Review(errors, tuple(map(_as_warning, error.errors)))
    lacking = await priority_errors(runtime, has_priority_class) if has_priority_class is not None else []
    if errors := (*errors, *_fit_errors(obj, runtime, pipeline), *(lacking if must_exist else ())):
        return Review(errors, tuple(_deprecation(runtime)))
    warnings = (*_deprecation(runtime), *map(_as_warning, lacking), *ignored(mapping_at(obj, "spec"), runtime))
    return Review((), (*warnings, *_trial_warnings(obj, model, runtime, pipeline)))


def review_runtime(obj: Object, pipeline: Pipeline) -> Review:
    """Errors for which Kubeflow Trainer (Go) refuses a runtime of v1alpha1, and warnings of what cannot be built."""
    model = decoded(obj)
    trial = review_model(model | {"apiVersion": TRAIN_JOBS.api_version}, None, pipeline)
    warnings = (*map(_as_warning, trial.errors), *trial.warnings, *_sdk_warnings(model))
    return Review(tuple(_ancestor_errors(model)), warnings)


def _trial_warnings(obj: Object, model: Object, runtime: Runtime, pipeline: Pipeline) -> Iterator[AdmissionWarning]:
    """What keeps the TrainJob, of which `model` is the decoded form, from becoming Jobs, with paths of v1alpha1."""
    if is_being_deleted(obj) or has_ended(obj):
        return
    try:
        # Read strictly it has the version whose schema it must fit.
        fields = {"apiVersion": TRAIN_JOBS.api_version, "metadata": obj["metadata"], "spec": model.get("spec")}
        train_job = TrainJob.from_object(fields, strict=True)
        train_job = train_job.model_copy(update={"api_version": obj["apiVersion"]})
        review = pipeline.review(train_job, runtime, None)
        findings: Iterable[FieldError | AdmissionWarning] = (*review.errors, *review.warnings)
    except InvalidObjectError as error:
        findings = (each for each in error.errors if not is_larger_than_the_model(each))
    paths: dict[str, str] | None = None
    for finding in findings:
        paths = dict(override_paths(obj)) if paths is None else paths
        yield _translated(finding, paths)


def _fit_errors(obj: Object, runtime: Runtime, pipeline: Pipeline) -> Iterator[FieldError]:
    """The errors of a TrainJob that does not fit the runtime."""
    spec = mapping_at(obj, "spec")
    jobs = {job.name: job for job in runtime.spec.template.spec.replicated_jobs or []}
    devices_of = partial(pipeline.devices.devices_of, namespace=namespace_of(obj), by_name=True)
    yield from policy_errors(spec, runtime, devices_of)
    for member, step in _INITIALIZERS.items():
        if mapping_at(spec, "initializer").get(member) is not None:
            yield from _initializer_errors(spec.get("runtimeRef"), step, f"{member}Config", jobs.get(step))
    yield from name_errors(spec, jobs)


def _initializer_errors(ref: Any, step: str, member: str, job: ReplicatedJob | None) -> Iterator[FieldError]:
    if job is None:
        rule = f"must have {step} job when trainJob is configured with input {member}"
        yield invalid("spec.runtimeRef", ref, rule)
        return
    container = containers_of(job).get(step)
    if container is None:
        rule = f"must have container with name - {step} in the {step} job"
        yield invalid("spec.runtimeRef", ref, rule)


def _ancestor_errors(runtime: Object) -> Iterator[FieldError]:
    """The errors of the replicated Jobs of a runtime that a TrainJob changes."""
    template = mapping_at(runtime, "spec", "template", "spec")
    for index, job in enumerate(objects_in(template.get("replicatedJobs"))):
        job_template = mapping_at(job, "template")
        ancestor = mapping_at(job_template, "metadata", "labels").get(ANCESTOR_LABEL)
        required = _MAIN_CONTAINERS.get(ancestor) if isinstance(ancestor, str) else None
        if required is None:
            continue
        field = f"spec.template.spec.replicatedJobs[{index}]"
        if job.get("replicas", 1) != 1:
            yield invalid(f"{field}.replicas", job.get("replicas"), "always must be 1")
        pod_spec = mapping_at(job_template, "spec", "template", "spec")
        names = [container.get("name") for container in objects_in(pod_spec.get("containers"))]
        if required not in names:
            path = f"{field}.template.spec.template.spec.containers"
            yield invalid(path, names, f"must contain the required container for the ancestor: {ancestor}")


def _sdk_warnings(runtime: Object) -> Iterator[AdmissionWarning]:
    """Warnings of a label that keeps the SDK from listing runtimes; it leaves out those without a framework label."""
    if FRAMEWORK_LABEL not in labels_of(runtime):
        return
    consequence = "list_runtimes() of the SDK fails for all runtimes because of this one"
    if mapping_at(runtime, "spec").get("mlPolicy") is None:
        yield AdmissionWarning("spec.mlPolicy", f"is absent: {consequence}")
    jobs = objects_in(mapping_at(runtime, "spec", "template", "spec").get("replicatedJobs"))
    if not any(_trains_for_the_sdk(mapping_at(job, "template")) for job in jobs):
        rule = f"need a Job with the label {ANCESTOR_LABEL} and a container {NODE} that has an image"
        yield AdmissionWarning("spec.template.spec.replicatedJobs", f"{rule}: {consequence}")


def _trains_for_the_sdk(template: Object) -> bool:
    containers = objects_in(mapping_at(template, "spec", "template", "spec").get("containers"))
    is_labelled = ANCESTOR_LABEL in mapping_at(template, "metadata", "labels")
    return is_labelled and any(each.get("name") == NODE and each.get("image") for each in containers)


def _deprecation(runtime: Runtime) -> Iterator[AdmissionWarning]:
    obj = {"metadata": runtime.metadata.to_object()}
    if runtime.kind == CLUSTER_TRAINING_RUNTIMES.kind and labels_of(obj).get(SUPPORT_LABEL) == DEPRECATED:
        yield AdmissionWarning(
            "",
            f'Referenced ClusterTrainingRuntime "{name_of(obj)}" is deprecated and will be removed in a future release '
            "of Kubeflow Trainer",
        )


def _reference(obj: Object) -> TrainJob:
    """A TrainJob that says no more than which runtime it builds on, and whether it was built."""
    ref = mapping_at(obj, "spec", "runtimeRef")
    fields: Object = {
        "metadata": {
            name: obj["metadata"].get(name) for name in ("name", "namespace", "uid") if obj["metadata"].get(name)
        },
        "spec": {"runtimeRef": ref},
        "status": obj.get("status"),
    }
    try:
        return TrainJob.from_object(fields)
    except InvalidObjectError:
        kind = "TrainingRuntime" if ref.get("kind") == TRAINING_RUNTIMES.kind else "ClusterTrainingRuntime"
        return TrainJob(
            metadata=ObjectMetadata(namespace=str(obj["metadata"].get("namespace") or "")),
            spec=TrainJobSpec(runtime_ref=RuntimeRef.model_construct(name=str(ref.get("name")), kind=kind)),
        )


def _as_warning(finding: FieldError | AdmissionWarning) -> AdmissionWarning:
    return AdmissionWarning(finding.field, finding.message)


def _translated(finding: FieldError | AdmissionWarning, paths: dict[str, str]) -> AdmissionWarning:
    """A warning of a finding about the model, with the path of v1alpha1."""
    for ours, theirs in paths.items():
        if finding.field == ours or finding.field.startswith((f"{ours}.", f"{ours}[")):
            return AdmissionWarning(theirs + finding.field.removeprefix(ours), finding.message)
    return _as_warning(finding)


def _response(review: Review) -> AdmissionResponse:
    warnings = tuple(islice(dict.fromkeys(map(str, review.warnings)), _MOST_WARNINGS))
    if not review.errors:
        return AdmissionResponse.allow(warnings)
    texts = [str(error)[:_LONGEST_TEXT] for error in review.errors[:_MOST_ERRORS]]
    message = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    return AdmissionResponse.fail(403, "Forbidden", message, warnings=warnings)
