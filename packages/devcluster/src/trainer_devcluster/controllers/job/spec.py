"""The fields of a Job's specification and status that its controller reads, with their defaults."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Self

from trainer.kube.clock import parse_timestamp
from trainer.kube.objects import Object, is_condition_true
from trainer_devcluster.controllers.job.pods import is_active, is_tracked

CONTROLLER_NAME = "kubernetes.io/job-controller"
"""Value of `spec.managedBy` that names this controller."""


@dataclass(frozen=True, slots=True)
class JobSpec:
    """A Job's specification, decoded once per reconcile."""

    parallelism: int
    completions: int | None
    """None for a work queue: any success completes the Job once its pods are done."""
    indexed: bool
    backoff_limit: int
    suspended: bool
    replace_only_failed: bool
    """Whether a terminating pod keeps its place until it has failed (podReplacementPolicy)."""
    restarts_in_place: bool
    """Whether the kubelet restarts failed containers (restartPolicy OnFailure)."""
    active_deadline: int | None
    """Seconds since `status.startTime`."""

    @classmethod
    def of(cls, job: Object) -> Self:
        """Decode the specification of a stored Job, which has its defaults."""
        spec = job["spec"]
        return cls(
            parallelism=spec.get("parallelism", 1),
            completions=spec.get("completions"),
            indexed=spec.get("completionMode") == "Indexed",
            backoff_limit=spec.get("backoffLimit", 6),
            suspended=bool(spec.get("suspend")),
            replace_only_failed=spec.get("podReplacementPolicy") == "Failed",
            restarts_in_place=spec["template"]["spec"].get("restartPolicy") == "OnFailure",
            active_deadline=spec.get("activeDeadlineSeconds"),
        )

    def has_index(self, index: int | None) -> bool:
        """Whether the Job, which may have been scaled down, has this completion index."""
        return index is not None and index < (self.completions or 0)


def is_managed_here(job: Object) -> bool:
    """Whether the Job is ours and not that of a controller named by `spec.managedBy`."""
    return job["spec"].get("managedBy") in (None, CONTROLLER_NAME)


def is_complete_or_failed(job: Object) -> bool:
    """Whether the Job has reached its terminal condition."""
    return is_condition_true(job, "Complete") or is_condition_true(job, "Failed")


def start_time_of(job: Object) -> datetime | None:
    """`status.startTime`: when the Job was last started or resumed."""
    text = (job.get("status") or {}).get("startTime")
    return parse_timestamp(text) if text else None


@dataclass(frozen=True)
class JobObservation:
    """A stored Job, the pods that it controls and the time; all decisions are functions of it."""

    job: Object
    pods: tuple[Object, ...]
    now: datetime

    @cached_property
    def spec(self) -> JobSpec:
        """The decoded specification."""
        return JobSpec.of(self.job)

    @cached_property
    def status(self) -> Object:
        """The stored status; {} for a new Job."""
        status: Object = self.job.get("status") or {}
        return status

    @cached_property
    def active(self) -> tuple[Object, ...]:
        """Pods that work, or will work."""
        return tuple(pod for pod in self.pods if is_active(pod))

    @cached_property
    def tracked(self) -> tuple[Object, ...]:
        """Pods that still hold the tracking finalizer."""
        return tuple(pod for pod in self.pods if is_tracked(pod))
