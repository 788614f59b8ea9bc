"""Validates PyTorchJobs and JAXJobs of `kubeflow.org/v1` where they are served.

| field | may change |
|---|---|
| metadata | always |
| runPolicy.managedBy, runPolicy.schedulingPolicy.queue | never |
| runPolicy.suspend, ttlSecondsAfterFinished, elasticPolicy.metrics | always |
| runPolicy.cleanPodPolicy | always, but from or to Running where a Master decides about the end |
| replicas of the Worker of a PyTorchJob that becomes an elastic TrainJob | always, by scale within the elasticPolicy |
| everything else | while suspended, or in the update that suspends or resumes, as queues do it |
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.kueue import PODSET_LABEL, QUEUE_LABEL
from trainer.api.trainingruntime import TrainingRuntime
from trainer.api.trainjob import TRAIN_JOBS, TrainJob
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.errors import INTERNAL, AdmissionWarning, Finding, Review
from trainer.kube.client import Client
from trainer.kube.field_errors import FieldError, forbidden, invalid
from trainer.kube.metrics import Metrics
from trainer.kube.objects import Object, is_being_deleted, is_condition_true, labels_of, mapping_at, objects_in
from trainer.kube.webhook.admission import AdmissionRequest, AdmissionResponse
from trainer.kube.webhook.server import WebhookServer
from trainer.v1alpha1.client import decoded
from trainer.v1alpha1.discovery import Version
from trainer.webhooks.handlers import AdmissionSeries, placed, response_of
from trainer.webhooks.mutability import changes
from trainer_v1_jobs.api.kinds import SERVED_KINDS, JobKind
from trainer_v1_jobs.api.reading import normalised
from trainer_v1_jobs.conversion import Conversion, convert
from trainer_v1_jobs.conversion.encoding import encoded
from trainer_v1_jobs.conversion.old_names import LOST_QUERY
from trainer_v1_jobs.conversion.references import LOST_SELECTION

_SCALE: Final = "scale"
_OBSERVED: Final = {"spec.runPolicy.ttlSecondsAfterFinished", "spec.runPolicy.managedBy"}
"""What counts for the job itself, whatever its TrainJob says."""
_LABELLED: Final = {LOST_SELECTION, LOST_QUERY}
"""What pods of a served job still have: the labels of the operator."""
_IMMUTABLE: Final = (("managedBy",), ("schedulingPolicy", "queue"))
"""Members of the run policy, as paths."""
_FREE: Final = ("suspend", "cleanPodPolicy", "ttlSecondsAfterFinished")
"""Members of the run policy that may always change."""
_AGAIN: Final = "delete the job and submit it again"
RUNNING: Final = (
    "cannot be changed while the job runs: set spec.runPolicy.suspend to true first, or in the same update, "
    f"or {_AGAIN}"
)
FIXED_SIZE: Final = (
    "cannot be changed while the job runs, since it is not elastic: suspend it first (spec.runPolicy.suspend), "
    "or submit it again with minReplicas and maxReplicas of spec.elasticPolicy"
)
FIXED_SIZE_RELEASED: Final = (
    "cannot be changed while the job runs, as TrainJobs of v1alpha1, which this cluster serves, have a fixed size: "
    "suspend it first (spec.runPolicy.suspend)"
)
FIXED_SIZE_PARTED: Final = (
    "cannot be changed while the job runs: its size is fixed, as it is standalone or its Master and Workers differ; "
    "suspend it first (spec.runPolicy.suspend)"
)
KEPT_PODS: Final = (
    "keeps no pods that still run when the job fails: they are deleted; collect the logs that you need while they run"
)
LATE_CLEANING: Final = (
    "Running has no effect after the end of the job: workers that still run do so until they end; "
    "set All, which deletes them with the TrainJob and its finished pods, or delete the job"
)


class JobAdmission:
    """Admits jobs of the served v1 kinds.

    Args:
        pipeline: reviews the TrainJobs that they become.
        client: reads the job that is scaled.
        version: of the TrainJobs that the cluster serves. Default: v2alpha1.
        metrics: of the webhooks. Default: None, nobody's.
    """

    def __init__(
        self, pipeline: Pipeline, client: Client, *, version: Version = "v2alpha1", metrics: Metrics | None = None
    ) -> None:
        self._pipeline = pipeline
        self._client = client
        self._version = version
        self._series = (metrics or Metrics()).series(AdmissionSeries)

    def register(self, server: WebhookServer) -> None:
        """Serve a validating webhook for each kind, at the path of the Training Operator's."""
        for kind in SERVED_KINDS:
            name = kind.resource.kind
            handler = self._series.measured(name, partial(self.validate, kind))
            path = f"/validate-kubeflow-org-v1-{name.lower()}"
            server.register(path, f"validator.{name.lower()}.{kind.resource.group}", handler)

    async def validate(self, kind: JobKind, request: AdmissionRequest) -> AdmissionResponse:
        """Refuse a job that cannot become a TrainJob, and changes that a running one would ignore."""
        if request.object is None or request.subresource not in {"", _SCALE}:
            return AdmissionResponse.allow()
        if request.subresource == _SCALE:
            job = await self._client.get(kind.resource, request.name, request.namespace)
            return response_of(Review.of(_scale_errors(job, kind, request.object, self._version)))
        obj = placed(request.object, request)
        old = placed(request.old_object, request) if request.old_object is not None else None
        return response_of(review_job(obj, old, kind, self._pipeline, self._version))


def review_job(
    obj: Object, old: Object | None, kind: JobKind, pipeline: Pipeline, version: Version = "v2alpha1"
) -> Review:
    """Errors that refuse a job, and warnings for its author.

    An update is refused only for errors that the stored job does not have, so that it can always be suspended or lose a
    finalizer; one of a job that has ended or is being deleted is not refused at all, but perhaps warned of.
    """
    if old is None:
        return Review.of(_findings(obj, kind, pipeline, version))
    if mapping_at(obj, "spec") == mapping_at(old, "spec") or is_being_deleted(obj):
        return Review()
    if _has_ended(old):
        return Review.of(_late_changes(old, obj, kind))
    if errors := tuple(_forbidden_changes(old, obj, kind, version)):
        return Review.of(errors)
    review = Review.of(_findings(obj, kind, pipeline, version))
    if not review.errors:
        return review
    before = Review.of(_findings(old, kind, pipeline, version))
    return Review.of([*(set(review.errors) - set(before.errors)), *review.warnings])


def _findings(obj: Object, kind: JobKind, pipeline: Pipeline, version: Version) -> Iterator[Finding]:
    """Errors of the job itself, else of the TrainJob that it becomes, and what is lost on the way."""
    try:
        conversion = encoded(convert(obj, kind, version=version), version)
    except InvalidObjectError as error:
        yield from error.errors
        return
    is_gang = _is_gang_by_setting(conversion, pipeline)
    for lost in conversion.findings:
        if is_gang and lost.field.endswith(".schedulerName"):
            continue
        if not lost.field.startswith("metadata.") and (message := _unobserved(lost, obj)):
            yield AdmissionWarning(lost.field, message)
    errors = _errors(conversion, pipeline)
    yield from errors
    if _is_parted_later(obj):
        parted = _errors(encoded(convert(_parted(obj, kind), kind, version=version), version), pipeline)
        yield from (each for each in parted if each.field == "metadata.name" and each not in errors)


def _errors(conversion: Conversion, pipeline: Pipeline) -> list[FieldError]:
    """What is wrong with the TrainJob that a job becomes."""
    assert conversion.runtime is not None, "it is written for the job where no others are given"
    try:
        # Read strictly they have the version whose schema they must fit.
        train_job = TrainJob.from_object(
            decoded(conversion.train_job) | {"apiVersion": TRAIN_JOBS.api_version}, strict=True
        )
        runtime = TrainingRuntime.from_object(
            pipeline.gang.applied(decoded(conversion.runtime)) | {"apiVersion": TRAIN_JOBS.api_version}, strict=True
        )
    except InvalidObjectError as error:
        return [*map(_in_words_of_the_job, error.errors)]
    train_job = train_job.model_copy(update={"api_version": conversion.train_job["apiVersion"]})
    return [*map(_in_words_of_the_job, pipeline.review(train_job, runtime).errors)]


def _is_gang_by_setting(conversion: Conversion, pipeline: Pipeline) -> bool:
    """Whether the manager makes a gang of the job as an operator with --gang-scheduler-name did."""
    runtime = decoded(conversion.runtime or {})
    return pipeline.gang.applied(runtime) is not runtime


def _is_parted_later(obj: Object) -> bool:
    """Whether Kueue or Katib has Master and Workers differ, so that names of pods say the role."""
    owners = objects_in(mapping_at(obj, "metadata").get("ownerReferences"))
    return QUEUE_LABEL in labels_of(obj) or any(owner.get("kind") == "Trial" for owner in owners)


def _parted(obj: Object, kind: JobKind) -> Object:
    """The job as Kueue starts it: the templates of its roles have different labels."""
    result = copy.deepcopy(normalised(obj, kind))
    for role, spec in result["spec"][kind.replicas_field].items():
        metadata = spec["template"].get("metadata") or {}
        labels = (metadata.get("labels") or {}) | {PODSET_LABEL: role.lower()}
        spec["template"]["metadata"] = metadata | {"labels": labels}
    return result


def _unobserved(lost: FieldError, obj: Object) -> str:
    """What is lost although the controller does for the job what a TrainJob cannot; "" for nothing.

    It keeps workers that still run when the Master has succeeded. An elastic job ends all pods with the first.
    """
    if lost.field in _OBSERVED or lost.message in _LABELLED:
        return ""
    if lost.field != "spec.runPolicy.cleanPodPolicy":
        return lost.message
    if mapping_at(obj, "spec", "runPolicy").get("cleanPodPolicy") == "All":
        return ""
    return KEPT_PODS if mapping_at(obj, "spec").get("elasticPolicy") is None else lost.message


def _in_words_of_the_job(error: FieldError) -> FieldError:
    """An error of the TrainJob or its runtime, whose fields the author of the job does not know."""
    if error.reason == INTERNAL or error.field.startswith("metadata."):
        return error
    return FieldError("spec", f"Invalid value: becomes a TrainJob with {error}")


def _forbidden_changes(old: Object, new: Object, kind: JobKind, version: Version) -> Iterator[FieldError]:
    before, after = _spec(old, kind), _spec(new, kind)
    for *steps, name in _IMMUTABLE:
        former, present = (mapping_at(each, "runPolicy", *steps).get(name) for each in (before, after))
        if former != present:
            yield invalid(".".join(("spec.runPolicy", *steps, name)), present, f"is immutable: {_AGAIN}")
    if _is_suspended(before) or _is_suspended(after):
        return
    if _deletes_running_pods(before, kind) != _deletes_running_pods(after, kind):
        yield forbidden("spec.runPolicy.cleanPodPolicy", RUNNING)
    is_elastic, fixed = _elasticity(old, kind, version)
    former, present = (_fixed(each, kind, is_elastic=is_elastic) for each in (before, after))
    for path in changes(former, present, "spec"):
        place = _with_role(path, kind)
        yield forbidden(place, fixed if place == _size_of(kind) and not is_elastic else RUNNING)


def _late_changes(old: Object, new: Object, kind: JobKind) -> Iterator[AdmissionWarning]:
    """What the author of a job that has ended may expect, and does not happen; pods of a failed one do not run on."""
    before, after = (_deletes_running_pods(_spec(each, kind), kind) for each in (old, new))
    if after and not before and is_condition_true(old, "Succeeded"):
        yield AdmissionWarning("spec.runPolicy.cleanPodPolicy", LATE_CLEANING)


def _deletes_running_pods(spec: Object, kind: JobKind) -> bool:
    """Whether the workers of a Master have a success policy, which is fixed when they are made."""
    has_choice = "Master" in mapping_at(spec, kind.replicas_field) and spec.get("elasticPolicy") is None
    return has_choice and mapping_at(spec, "runPolicy").get("cleanPodPolicy") == "Running"


def _elasticity(job: Object, kind: JobKind, version: Version) -> tuple[bool, str]:
    """Whether the size of a stored job may change while it runs, and what to say where it may not."""
    policy = mapping_at(job, "spec").get("elasticPolicy")
    if policy is None:
        return False, FIXED_SIZE
    if version == "v1alpha1":
        return False, FIXED_SIZE_RELEASED
    try:
        runtime = convert(job, kind, version=version).runtime
    except InvalidObjectError:
        return True, ""  # it has no pods
    if not mapping_at(runtime, "spec", "mlPolicy", "torch", "elasticPolicy"):
        return False, FIXED_SIZE_PARTED
    return any(mapping_at(policy).get(name) for name in ("minReplicas", "maxReplicas")), FIXED_SIZE


def _scale_errors(job: Object, kind: JobKind, scale: Object, version: Version) -> Iterator[FieldError]:
    spec, wanted = _spec(job, kind), mapping_at(scale, "spec").get("replicas") or 0
    worker = mapping_at(spec, kind.replicas_field, "Worker")
    field = _size_of(kind)
    if wanted == worker.get("replicas", 1) or _has_ended(job):
        return
    if wanted < 1:
        yield invalid(field, wanted, "must be at least 1")
        return
    is_elastic, fixed = _elasticity(job, kind, version)
    if not is_elastic:
        if not _is_suspended(spec):
            yield forbidden(field, fixed)
        return
    policy = mapping_at(spec, "elasticPolicy")
    least = policy.get("minReplicas") or policy.get("maxReplicas") or wanted
    most = policy.get("maxReplicas") or policy.get("minReplicas") or wanted
    if not least <= wanted <= most:
        yield invalid(field, wanted, f"must be between {least} and {most}, as spec.elasticPolicy says")


def _size_of(kind: JobKind) -> str:
    return f"spec.{kind.replicas_field}[Worker].replicas"


def _with_role(path: str, kind: JobKind) -> str:
    """A path with the role in brackets, as in all other messages."""
    for role in kind.roles:
        start = f"spec.{kind.replicas_field}.{role}"
        if path == start or path.startswith(f"{start}."):
            return f"spec.{kind.replicas_field}[{role}]{path.removeprefix(start)}"
    return path


def _spec(obj: Object, kind: JobKind) -> Object:
    try:
        return mapping_at(normalised(obj, kind), "spec")
    except InvalidObjectError:
        return mapping_at(obj, "spec")


def _fixed(spec: Object, kind: JobKind, *, is_elastic: bool) -> Object:
    """What may not change while the job runs."""
    kept = copy.deepcopy(spec)
    for name in _FREE:
        mapping_at(kept, "runPolicy").pop(name, None)
    if not mapping_at(kept, "runPolicy"):
        kept.pop("runPolicy", None)
    mapping_at(kept, "elasticPolicy").pop("metrics", None)
    if is_elastic:
        mapping_at(kept, kind.replicas_field, "Worker").pop("replicas", None)
    return kept


def _is_suspended(spec: Object) -> bool:
    found: Any = mapping_at(spec, "runPolicy").get("suspend")
    return bool(found)


def _has_ended(job: Object) -> bool:
    return any(is_condition_true(job, end) for end in ("Succeeded", "Failed"))
