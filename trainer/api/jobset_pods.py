"""The node of a JobSet that a pod is, and the order in which pods of one node were created."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from trainer.api.jobset_labels import (
    COMPLETION_INDEX,
    JOB_INDEX,
    JOBSET_NAME,
    REPLICAS,
    REPLICATED_JOB,
    RESTART_ATTEMPT,
)
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.objects import (
    ObjectKey,
    annotations_of,
    has_finished,
    is_being_deleted,
    labels_of,
    metadata_of,
    name_of,
)

PODS_BY_JOBSET: Final = "pods-by-jobset"
"""Index of pods by namespace and name of their JobSet, for pods that its Jobs have made."""


class Place(NamedTuple):
    """A node of a JobSet; places sort by Job, job index and completion index."""

    replicated_job: str
    """Name of the replicated Job; empty for a pod without a JobSet."""
    job_index: int
    """Index of the Job in the replicated Job."""
    completion_index: int
    """Index of the pod in the Job."""


class Age(NamedTuple):
    """When a pod was made."""

    restart_attempt: int
    """Restarts of the JobSet before the pod was created; it orders pods that were created in the same second."""
    creation_timestamp: str
    """The creation time, by the clock of the API server."""


def place_of(pod: Mapping[str, Any]) -> Place:
    """The node that a pod is; missing labels count as index 0."""
    labels = labels_of(pod)
    # Before Kubernetes 1.28 the index is an annotation only.
    index = labels.get(COMPLETION_INDEX) or annotations_of(pod).get(COMPLETION_INDEX)
    return Place(labels.get(REPLICATED_JOB, ""), _number(labels.get(JOB_INDEX)), _number(index))


def node_name(pod: Mapping[str, Any]) -> str:
    """The pod in the words of people: replicated job and index, such as `node-0`; without a JobSet its own name."""
    job, job_index, index = place_of(pod)
    if not job:
        return name_of(pod)
    has_several_jobs = labels_of(pod).get(REPLICAS, "1") != "1"
    return f"{job}-{job_index}-{index}" if has_several_jobs else f"{job}-{index}"


def jobset_keys(obj: CachedObject) -> tuple[ObjectKey, ...]:
    """Map function from a Job or pod to its JobSet, which has the name of the TrainJob, by its label."""
    name = obj.labels.get(JOBSET_NAME)
    return (ObjectKey(obj.key.namespace, name),) if name else ()


def made_by_jobsets(pod: CachedObject) -> tuple[str, ...]:
    """Index function of `PODS_BY_JOBSET`."""
    job = pod.controller
    is_made = job is not None and is_made_by(job.kind, job.name, pod.labels)
    return tuple(map(str, jobset_keys(pod))) if is_made else ()


def is_made_by(owner_kind: str | None, owner_name: str | None, labels: Mapping[str, str]) -> bool:
    """Whether the controller of a pod is the Job that its labels name; anybody may give a pod such labels.

    Args:
        owner_kind: of the controller; None when it has none.
        owner_name: name of the controller.
        labels: of the pod.
    """
    job = "-".join(labels.get(name, "") for name in (JOBSET_NAME, REPLICATED_JOB, JOB_INDEX))
    return owner_kind == "Job" and owner_name == job


def age_of(pod: Mapping[str, Any]) -> Age:
    """When a pod was made."""
    return Age(_number(labels_of(pod).get(RESTART_ATTEMPT)), metadata_of(pod).get("creationTimestamp") or "")


def recency_of(pod: Mapping[str, Any]) -> tuple[Age, bool, str]:
    """Sort key of pods of the same place: the pod with the greatest key is the present one.

    Of two pods that were created in the same second, a pod that goes on is greater than one that ends or has ended.
    """
    is_over = is_being_deleted(pod) or has_finished(pod)
    return age_of(pod), not is_over, name_of(pod)


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= _LONGEST_LABEL else 0


_LONGEST_LABEL = 63
