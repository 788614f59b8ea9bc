"""What a v1 job becomes: a TrainingRuntime, a TrainJob and perhaps an autoscaler, all with its name and owned by it."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Final

from trainer.api.kueue import split_metadata
from trainer.kube.field_errors import FieldError
from trainer.kube.objects import Object, controller_reference, mapping_at, metadata_of, name_of
from trainer.v1alpha1.client import decoded
from trainer.v1alpha1.discovery import Version
from trainer_v1_jobs.api.kinds import Job, JobKind, PyTorchJob
from trainer_v1_jobs.api.policies import RunPolicy
from trainer_v1_jobs.api.reading import normalised
from trainer_v1_jobs.controllers.autoscaler import autoscaler_of
from trainer_v1_jobs.controllers.labels import JOB_ROLE, MASTER, labels_of_job, labels_of_replica, selector_of
from trainer_v1_jobs.controllers.roles import ReplicaIndex, ReplicaLayout
from trainer_v1_jobs.conversion import convert
from trainer_v1_jobs.conversion.encoding import encoded
from trainer_v1_jobs.conversion.places import NODE

_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_TRIAL: Final = "kubeflow.org/v1beta1", "Trial"
"""What owns the jobs of Katib."""
_KEPT_BY_THE_JOB: Final = ("suspend", "managedBy", "ttlSecondsAfterFinished")
"""Fields of TrainJobs that follow from the run policy, which is observed for the job itself."""


@dataclass(frozen=True, slots=True)
class Children:
    """The objects, in the shape of the version that the cluster serves."""

    runtime: Object
    train_job: Object
    runtime_spec: Object
    """The spec of the runtime in the shape of the model, as caches have it."""
    autoscaler: Object | None
    """None for a job without metrics, or whose size is fixed."""
    layout: ReplicaLayout
    """The roles in the pods."""
    losses: tuple[FieldError, ...] = ()
    """What the version cannot say of the job. Defaults to nothing."""

    @property
    def elastic_nodes(self) -> int | None:
        """The number of nodes of an elastic training; None for any other, whose number is fixed."""
        if not mapping_at(self.runtime_spec, "mlPolicy", "torch", "elasticPolicy"):
            return None
        return nodes_of(self.train_job)


def nodes_of(train_job: Object) -> int | None:
    """The number of nodes that a TrainJob states; None where that is its runtime's."""
    found: int | None = mapping_at(train_job, "spec", "trainer").get("numNodes")
    return found


def read_leniently(obj: Object, kind: JobKind) -> Job:
    """The model of a stored job, without checks.

    Raises:
        InvalidObjectError: it cannot be read at all.
    """
    return kind.model.from_object(normalised(obj, kind))


def children_of(obj: Object, kind: JobKind, version: Version = "v2alpha1") -> Children:
    """The objects of a stored job; nobody may change them. `version` is what the cluster serves.

    Raises:
        InvalidObjectError: the job is wrong; the message has a line for each field.
    """
    job = read_leniently(obj, kind)
    # Kueue counts the job, and not its TrainJob or JobSet as well.
    unqueued = obj | {"metadata": split_metadata(metadata_of(obj))[0]}
    conversion = convert(_with_leader(unqueued, job, kind), kind, version=version)
    train_job, runtime = conversion.train_job, conversion.runtime
    assert runtime is not None, "it is written for the job where no others are given"
    for each in (train_job, runtime):
        each["metadata"] = _own_metadata(each["metadata"], obj)
    for name in _KEPT_BY_THE_JOB:
        train_job["spec"].pop(name, None)
    if not _ends_all(job):
        _let_workers_end(runtime)
    # The autoscaler is that of the job, and scales it.
    mapping_at(runtime, "spec", "mlPolicy", "torch", "elasticPolicy").pop("metrics", None)
    replicas = _replicas(job, kind, runtime)
    layout = ReplicaLayout(replicas)
    for replicated in runtime["spec"]["template"]["spec"]["replicatedJobs"]:
        labels = _labels(replicas[replicated["name"]], kind, name_of(obj), layout, is_elastic=_is_elastic(job))
        metadata = replicated["template"]["spec"]["template"].setdefault("metadata", {})
        metadata["labels"] = (metadata.get("labels") or {}) | labels
    written = encoded(replace(conversion, train_job=train_job, runtime=runtime, findings=()), version)
    assert written.runtime is not None
    stored = decoded(written.runtime)
    is_elastic = bool(mapping_at(stored, "spec", "mlPolicy", "torch", "elasticPolicy"))
    return Children(
        written.runtime,
        written.train_job,
        stored["spec"],
        autoscaler_of(obj, job, kind) if is_elastic else None,
        layout,
        written.findings,
    )


def _with_leader(obj: Object, job: Job, kind: JobKind) -> Object:
    """A job of Katib with a Master that has its label from the beginning, so that it is a Job of its own.

    Katib adds its collector to pods of a trial that have the label `training.kubeflow.org/job-role: master` when they
    are created.
    """
    owners = metadata_of(obj).get("ownerReferences") or []
    is_trial = any((each.get("apiVersion"), each.get("kind")) == _TRIAL for each in owners)
    if not is_trial or _is_elastic(job) or not {"Master", "Worker"} <= kind.replica_specs(job).keys():
        return obj
    result = copy.deepcopy(normalised(obj, kind))
    metadata = result["spec"][kind.replicas_field]["Master"]["template"].setdefault("metadata", {})
    metadata["labels"] = (metadata.get("labels") or {}) | {JOB_ROLE: MASTER}
    return result


def _is_elastic(job: Job) -> bool:
    return isinstance(job, PyTorchJob) and job.spec.elastic_policy is not None


def _ends_all(job: Job) -> bool:
    """Whether pods that still run when the job has succeeded are deleted, for which there is a success policy."""
    return _is_elastic(job) or (job.spec.run_policy or RunPolicy()).clean_pod_policy == "Running"


def _let_workers_end(runtime: Object) -> None:
    """Have the training end with its last pod. The job, whose status follows from the Master's pod, ends before."""
    jobset = runtime["spec"]["template"]["spec"]
    for spec in (jobset, *(each["template"]["spec"] for each in jobset["replicatedJobs"])):
        spec.pop("successPolicy", None)


def _replicas(job: Job, kind: JobKind, runtime: Object) -> dict[str, tuple[tuple[str, int], ...]]:
    """The roles of each replicated Job, see `ReplicaLayout`."""
    specs = kind.replica_specs(job)
    sizes = {role: specs[role].replicas for role in kind.roles if role in specs}
    roles = tuple((role, 1 if size is None else size) for role, size in sizes.items() if size != 0)
    names = [each["name"] for each in runtime["spec"]["template"]["spec"]["replicatedJobs"]]
    if names == [NODE]:
        return {NODE: roles}
    return {role.lower(): ((role, size),) for role, size in roles}


def _labels(
    roles: tuple[tuple[str, int], ...], kind: JobKind, name: str, layout: ReplicaLayout, *, is_elastic: bool
) -> dict[str, str]:
    """What pods of a replicated Job are labelled with from their beginning: what all of them have."""
    (role, size), *others = roles
    if others:
        return labels_of_job(kind, name)
    if size > 1 or is_elastic:
        return selector_of(kind, name, role)
    return labels_of_replica(kind, name, ReplicaIndex(role, 0), has_master=layout.has("Master"))


def _own_metadata(metadata: Object, owner: Object) -> Object:
    own = {name: value for name, value in metadata.items() if name not in {"generateName", "annotations"}}
    annotations = mapping_at(metadata, "annotations")
    if kept := {name: value for name, value in annotations.items() if name != _LAST_APPLIED}:
        own["annotations"] = kept
    return own | {"ownerReferences": [controller_reference(owner)]}
