"""Who takes a pod away: its Job, or somebody else, which is a disruption.

Who has deleted a pod stands in no object. The condition DisruptionTarget names evictions, preemptions and what node and
kubelet do (Kubernetes documentation, "Disruptions"); and a Job deletes its pods once it has failed, is suspended or is
deleted. All times have a resolution of a second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from trainer.kube.clock import parse_timestamp, timestamp
from trainer.kube.objects import find_condition, is_being_deleted, is_condition_true, labels_of, metadata_of


class Disruption(StrEnum):
    """Why a pod was disrupted: the words of Kubernetes' condition DisruptionTarget, and ours."""

    EVICTION = "EvictionByEvictionAPI"
    """By the eviction API, as `kubectl drain` does."""
    PREEMPTION = "PreemptionByScheduler"
    """By the scheduler, for a pod of a higher priority."""
    TAINT = "DeletionByTaintManager"
    """For a taint of its node, such as when the node is not ready."""
    KUBELET = "TerminationByKubelet"
    """By the kubelet: the node ran short of resources, or was shut down."""
    POD_GC = "DeletionByPodGC"
    """By the garbage collection of pods, since its node is gone or out of service."""
    DELETED = "Deleted"
    """By a person or another controller than its Job."""
    SAVED = "SavedAndEnded"
    """The training was asked to end, and has saved its state (exit code 75)."""
    OTHER = "Other"
    """Anything else that has set the condition; the reason of the pod is its word."""


class DeletedBy(StrEnum):
    """Why a Job deletes its pods."""

    FAILED_JOB = "JobFailed"
    SUSPENDED_JOB = "JobSuspended"
    COMPLETE_JOB = "JobComplete"
    DELETED_JOB = "JobDeleted"
    SMALLER_JOB = "JobScaledDown"


class Taken(NamedTuple):
    """That somebody has deleted or disrupted a pod."""

    reason: str
    """One CamelCase word, that of the condition if there is one."""
    message: str
    """What it says."""
    since: str
    """In RFC 3339; of a deletion, when it was asked for. Empty if unknown."""
    is_disruption: bool
    """Whether somebody else than its Job did it; False as well where nobody knows who."""
    is_deletion: bool = False
    """Whether nothing but the deletion of the pod shows it. Default: False."""


_BY_KUBELET = frozenset({"Evicted", "NodeShutdown", "Shutdown", "Terminated", "Preempting"})
"""Reasons of a failed pod that the kubelet has ended, which before Kubernetes 1.26 has no condition."""
_NODE_LOST = "NodeLost"


def taken_away(pod: Mapping[str, Any], job: Mapping[str, Any] | None) -> Taken | None:
    """Who has deleted or disrupted a pod; None if nobody has.

    Args:
        pod: the object.
        job: the Job that controls it. Default: unknown.
    """
    status = pod.get("status") or {}
    target = find_condition(pod, "DisruptionTarget")
    if target is not None and target.get("status") == "True":
        said = str(status.get("message") or target.get("message") or "")
        since = str(target.get("lastTransitionTime") or deletion_of(pod))
        return Taken(str(target.get("reason") or Disruption.OTHER), said, since, is_disruption=True)
    if status.get("phase") == "Failed" and status.get("reason") in _BY_KUBELET:
        return Taken(Disruption.KUBELET, str(status.get("message") or ""), deletion_of(pod), is_disruption=True)
    if status.get("reason") == _NODE_LOST:
        return Taken(_NODE_LOST, str(status.get("message") or ""), deletion_of(pod), is_disruption=True)
    requested = deletion_of(pod)
    return _deleted(pod, job, requested) if requested else None


def _deleted(pod: Mapping[str, Any], job: Mapping[str, Any] | None, requested: str) -> Taken:
    """Whether its Job has deleted it, as the conditions of the Job say.

    Of the same second nothing tells cause and consequence apart.
    """
    if job is None:
        return Taken(Disruption.DELETED, "", requested, is_disruption=False, is_deletion=True)
    times = [(by, since, said) for by, since, said in _stops(pod, job) if since <= requested]
    if not times:
        return Taken(Disruption.DELETED, "", requested, is_disruption=True, is_deletion=True)
    by, since, said = min(times, key=lambda each: each[1])
    if since == requested and by not in {DeletedBy.SUSPENDED_JOB, DeletedBy.DELETED_JOB}:
        return Taken(Disruption.DELETED, "", requested, is_disruption=False, is_deletion=True)
    return Taken(by, said, requested, is_disruption=False, is_deletion=True)


_STOPS = {
    "FailureTarget": DeletedBy.FAILED_JOB,
    "Failed": DeletedBy.FAILED_JOB,
    "SuccessCriteriaMet": DeletedBy.COMPLETE_JOB,
    "Complete": DeletedBy.COMPLETE_JOB,
    "Suspended": DeletedBy.SUSPENDED_JOB,
}


def _stops(pod: Mapping[str, Any], job: Mapping[str, Any]) -> Iterator[tuple[DeletedBy, str, str]]:
    """For what the Job has deleted its pods, since when, and what it says."""
    if is_being_deleted(job):
        yield DeletedBy.DELETED_JOB, deletion_of(job), ""
    spec = job.get("spec") or {}
    if spec.get("suspend") and not is_condition_true(job, "Suspended"):
        yield DeletedBy.SUSPENDED_JOB, "", ""
    for kind, by in _STOPS.items():
        condition = find_condition(job, kind) or {}
        if condition.get("status") == "True":
            said = ": ".join(str(condition[name]) for name in ("reason", "message") if condition.get(name))
            yield by, str(condition.get("lastTransitionTime") or ""), said
    index, completions = _index(pod), spec.get("completions")
    if index is not None and isinstance(completions, int) and index >= completions:
        yield DeletedBy.SMALLER_JOB, "", ""


def _index(pod: Mapping[str, Any]) -> int | None:
    text = str(labels_of(pod).get("batch.kubernetes.io/job-completion-index") or "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < len("1000000") else None


def deletion_of(pod: Mapping[str, Any]) -> str:
    """When the deletion of an object was asked for, in RFC 3339; empty if it was not.

    The API server keeps the end of the grace period.
    """
    metadata = metadata_of(pod)
    end, grace = metadata.get("deletionTimestamp"), metadata.get("deletionGracePeriodSeconds") or 0
    if not end:
        return ""
    return timestamp(parse_timestamp(end) - timedelta(seconds=grace)) if grace else str(end)
