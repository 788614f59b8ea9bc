"""Kueue's labels and annotations, which are on the object that it queues.

It queues TrainJobs of v1alpha1. Of v2alpha1 it knows none, and queues their JobSets, to which labels of `spec` go.
"""

from __future__ import annotations

from typing import Final

from trainer.api.losses import Losses
from trainer.kube.objects import Object, mapping_at

QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
"""Label by which Kueue finds the queue of a job."""
PODSET_LABEL: Final = "kueue.x-k8s.io/podset"
"""Label that Kueue writes into pod templates of a job that it has admitted."""
_WRITTEN: Final = frozenset({PODSET_LABEL, "kueue.x-k8s.io/workload", "kueue.x-k8s.io/tas"})
"""All labels and annotations that it writes there."""
MANAGER: Final = "kueue.x-k8s.io/manager"
"""Manager of what Kueue writes into a TrainJob of v1alpha1."""
MULTIKUEUE: Final = "kueue.x-k8s.io/multikueue"
"""The value of `managedBy` with which Kueue runs a job on another cluster."""
LOST_MULTIKUEUE: Final = (
    "is left out: Kueue sends no TrainJobs of v2alpha1 to other clusters, and the JobSet of one only with a queue "
    "(label kueue.x-k8s.io/queue-name) that does so"
)

_DOMAIN: Final = "kueue.x-k8s.io"
_METADATA: Final = ("labels", "annotations")


def is_of_kueue(key: str) -> bool:
    """Whether a label or annotation is one that Kueue reads or writes."""
    domain, slash, _ = key.partition("/")
    return bool(slash) and (domain == _DOMAIN or domain.endswith(f".{_DOMAIN}"))


def queued_as_jobset(train_job: Object, losses: Losses) -> Object:
    """A TrainJob of v2alpha1 whose JobSet has what Kueue reads, from one that has it itself.

    A queued JobSet is suspended and resumed by Kueue, and would be kept suspended by a TrainJob that is suspended.
    """
    if not (isinstance(train_job.get("metadata"), dict) and isinstance(train_job.get("spec"), dict)):
        return train_job
    metadata, of_kueue = split_metadata(mapping_at(train_job, "metadata"))
    spec = dict(mapping_at(train_job, "spec"))
    spec |= {name: values | mapping_at(spec, name) for name, values in of_kueue.items()}
    if QUEUE_LABEL in mapping_at(spec, "labels") and spec.get("suspend") is True:
        del spec["suspend"]
    if spec.get("managedBy") == MULTIKUEUE:
        del spec["managedBy"]
        losses.add("spec.managedBy", LOST_MULTIKUEUE)
    return train_job | {"metadata": metadata, "spec": spec}


def queued_as_train_job(train_job: Object) -> Object:
    """A TrainJob, still in the shape of v2alpha1, that has what Kueue reads, from one whose JobSet has it."""
    if not (isinstance(train_job.get("metadata"), dict) and isinstance(train_job.get("spec"), dict)):
        return train_job
    metadata, spec = dict(mapping_at(train_job, "metadata")), dict(mapping_at(train_job, "spec"))
    spec, of_jobset = split_metadata(spec)
    if isinstance(spec.get("jobSetMetadata"), dict):
        spec["jobSetMetadata"], further = split_metadata(spec["jobSetMetadata"])
        of_jobset = {name: mapping_at(further, name) | mapping_at(of_jobset, name) for name in further | of_jobset}
    metadata |= {name: mapping_at(metadata, name) | values for name, values in of_jobset.items()}
    return train_job | {"metadata": metadata, "spec": spec}


def without_admission(template: Object) -> Object:
    """A pod template without what Kueue writes into that of an admitted job."""
    metadata = dict(mapping_at(template, "metadata"))
    for name in _METADATA:
        if not _WRITTEN.isdisjoint(values := mapping_at(metadata, name)):
            metadata[name] = {key: value for key, value in values.items() if key not in _WRITTEN}
    kept = {name: value for name, value in metadata.items() if value != {}}
    return {name: value for name, value in template.items() if name != "metadata"} | (
        {"metadata": kept} if kept else {}
    )


def split_metadata(metadata: Object) -> tuple[Object, Object]:
    """What has labels and annotations without those of Kueue, and these; neither has empty ones that were not there."""
    kept, of_kueue = dict(metadata), {}
    for name in _METADATA:
        values = mapping_at(metadata, name)
        if found := {key: value for key, value in values.items() if is_of_kueue(str(key))}:
            of_kueue[name] = found
            kept[name] = {key: value for key, value in values.items() if key not in found}
            if not kept[name]:
                del kept[name]
    return kept, of_kueue
