"""Converts a job, see `convert`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from trainer.api.kueue import queued_as_jobset
from trainer.api.losses import Losses
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, FRAMEWORK_LABEL, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.field_errors import FieldError
from trainer.kube.objects import Object
from trainer.v1alpha1.discovery import Version
from trainer_v1_jobs.api.kinds import JobKind
from trainer_v1_jobs.conversion import jax, mpi, paddle, pytorch, tensorflow, xgboost
from trainer_v1_jobs.conversion.draft import Draft
from trainer_v1_jobs.conversion.run_policy import set_gang, train_job_fields
from trainer_v1_jobs.conversion.shipped import matching_runtime, survives_disruptions, without_shipped_variables
from trainer_v1_jobs.conversion.source import Source, source_of

RENDEZVOUS_PORTS: Final[Mapping[Version, int]] = {"v2alpha1": 29400, "v1alpha1": 29500}
"""Where nodes meet, by the version that the cluster serves."""

_KEPT_METADATA: Final = ("name", "generateName", "namespace", "labels", "annotations")
_LOST_METADATA: Final = {
    "finalizers": "is left out: who put it there does not know TrainJobs",
    "ownerReferences": "is left out: its owner makes and knows jobs of the former kind; have it make TrainJobs",
}

_DRAFTS: Final[Mapping[str, Callable[[Source, Losses, int], Draft]]] = {
    "PyTorchJob": pytorch.draft,
    "JAXJob": jax.draft,
    "TFJob": tensorflow.draft,
    "XGBoostJob": xgboost.draft,
    "PaddleJob": paddle.draft,
    "MPIJob": mpi.draft,
}


@dataclass(frozen=True, slots=True)
class Conversion:
    """A converted job."""

    train_job: Object
    """A TrainJob in the shape of v2alpha1, whatever the version."""
    runtime: Object | None
    """The TrainingRuntime that was written for it, likewise; None if a given one says the same."""
    findings: tuple[FieldError, ...]
    """What is lost: the field, as a path in the job, and what to do instead."""


def convert(
    obj: Object, kind: JobKind, *, version: Version = "v2alpha1", runtimes: Iterable[Object] = ()
) -> Conversion:
    """A job as a TrainJob that trains the same.

    Args:
        obj: the job; it is not changed. Its status is ignored.
        kind: see `trainer_v1_jobs.api.reading.kind_of`.
        version: that the cluster serves for which it is converted; ports and variables depend on it. Default: v2alpha1.
        runtimes: ClusterTrainingRuntimes that the cluster has, in the shape of the version; the first that says the
            same is used. Default: none, so that a runtime is written.

    Raises:
        InvalidObjectError: the operator would have refused the job; the message has a line for each wrong field.
    """
    source, losses = source_of(obj, kind, version), Losses()
    draft = _DRAFTS[kind.resource.kind](source, losses, RENDEZVOUS_PORTS[version])
    spec = _runtime_spec(source, draft, losses)
    metadata = _metadata(source, losses)
    fields = train_job_fields(source, losses)
    found = matching_runtime(spec, runtimes)
    if found is not None and not survives_disruptions(found[0]):
        rule = (
            "fails the training when a pod is drained or preempted, which the operator made again: "
            f"{found[0]['metadata']['name']} has no podFailurePolicy for DisruptionTarget: use a copy with one"
        )
        losses.add(f"{source.roles[0].path}.restartPolicy", rule)
    return assembled(metadata, draft, spec, fields=fields, found=found, losses=losses, version=version)


def assembled(
    metadata: Object,
    draft: Draft,
    spec: Object,
    *,
    fields: Object,
    found: tuple[Object, list[Object]] | None,
    losses: Losses,
    version: Version,
) -> Conversion:
    """The objects of parts.

    Args:
        metadata: of the TrainJob.
        draft: what the TrainJob says.
        spec: of a runtime.
        fields: further members of the TrainJob's spec.
        found: what `matching_runtime` has found for the runtime.
        losses: what is lost.
        version: that the cluster serves.
    """
    if found is None:
        runtime = _runtime(metadata, draft, spec)
        reference = {"kind": TRAINING_RUNTIMES.kind, "name": runtime["metadata"]["name"]}
        changes: Object = {}
    else:
        shipped, overrides = found
        runtime = None
        reference = {"kind": CLUSTER_TRAINING_RUNTIMES.kind, "name": shipped["metadata"]["name"]}
        changes = {"podSpecOverrides": overrides} if overrides else {}
        _leave_out_variables(draft.trainer, shipped)
    train_job = {
        "apiVersion": TRAIN_JOBS.api_version,
        "kind": TRAIN_JOBS.kind,
        "metadata": metadata,
        "spec": {"runtimeRef": reference} | ({"trainer": draft.trainer} if draft.trainer else {}) | changes | fields,
    }
    if version == "v2alpha1":
        train_job = queued_as_jobset(train_job, losses)
    # Nothing is shared with constants of this package.
    train_job, runtime = copy.deepcopy((train_job, runtime))
    return Conversion(train_job, runtime, tuple(losses.found))


def _metadata(source: Source, losses: Losses) -> Object:
    for name, message in _LOST_METADATA.items():
        if source.metadata.get(name):
            losses.add(f"metadata.{name}", message)
    return {name: source.metadata[name] for name in _KEPT_METADATA if name in source.metadata}


def _runtime_spec(source: Source, draft: Draft, losses: Losses) -> Object:
    template: Object = {"replicatedJobs": draft.jobs}
    if draft.success_policy is not None:
        template["successPolicy"] = draft.success_policy
    spec: Object = {"template": {"spec": template}}
    if draft.ml_policy:
        spec["mlPolicy"] = draft.ml_policy
    set_gang(source, draft, spec, losses)
    return spec


def _runtime(metadata: Object, draft: Draft, spec: Object) -> Object:
    """A runtime with the name of the job; of one whose name the server chooses, its beginning."""
    own = {"name": metadata.get("name") or metadata["generateName"].rstrip("-.")}
    own |= {name: metadata[name] for name in ("namespace",) if name in metadata}
    return {
        "apiVersion": TRAINING_RUNTIMES.api_version,
        "kind": TRAINING_RUNTIMES.kind,
        "metadata": own | {"labels": {FRAMEWORK_LABEL: draft.framework}},
        "spec": spec,
    }


def _leave_out_variables(trainer: Object, runtime: Object) -> None:
    if "env" in trainer:
        trainer["env"] = without_shipped_variables(trainer["env"], runtime)
        if not trainer["env"]:
            del trainer["env"]
