"""Which node of a JobSet a pod is, and which of the pods of one node was made last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from trainer.api.jobset_labels import COMPLETION_INDEX, JOB_INDEX, JOBSET_NAME, REPLICATED_JOB, RESTART_ATTEMPT
from trainer.kube.objects import annotations_of, is_being_deleted, labels_of, metadata_of, name_of

if TYPE_CHECKING:
    from collections.abc import Mapping


class Place(NamedTuple):
    """A node of a JobSet; places sort as people list nodes."""

    replicated_job: str
    """Empty for a pod that no JobSet made."""
    job_index: int
    """Which Job of the replicated Job."""
    completion_index: int
    """Which pod of the Job."""


class Age(NamedTuple):
    """When a pod was made."""

    restart_attempt: int
    """How often the JobSet had been restarted; decides also among pods of the same second."""
    creation_timestamp: str
    """By the clock of the API server."""


def place_of(pod: Mapping[str, Any]) -> Place:
    """Which node a pod is; where labels are missing it is the first one."""
    labels = labels_of(pod)
    # Before Kubernetes 1.28 the index is an annotation only.
    index = labels.get(COMPLETION_INDEX) or annotations_of(pod).get(COMPLETION_INDEX)
    return Place(labels.get(REPLICATED_JOB, ""), _number(labels.get(JOB_INDEX)), _number(index))


def is_made_by(owner_kind: str | None, owner_name: str | None, labels: Mapping[str, str]) -> bool:
    """Whether the controller of a pod is the Job that its labels tell of; labels alone may be given to any pod.

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
    """What decides between pods of the same place: the greatest is the present one.

    Of two that were made in the same second it is that which goes on.
    """
    is_over = is_being_deleted(pod) or (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}
    return age_of(pod), not is_over, name_of(pod)


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= _LONGEST_LABEL else 0


_LONGEST_LABEL = 63
