"""Validation of a Job's status (batch/v1, KEP-4368): a controller may not take back what it has told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.devcluster.apiserver.kinds.causes import not_negative
from trainer.kube.field_errors import invalid, required
from trainer.kube.objects import is_condition_true

if TYPE_CHECKING:
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object

_COUNTERS = ("active", "succeeded", "failed", "ready", "terminating")
_TERMINAL = ("Complete", "Failed")


def validate_job_status(job: Object, old: Object) -> list[FieldError]:
    """What is wrong with the new status of a Job."""
    status, before = job.get("status") or {}, old.get("status") or {}
    causes = [cause for field in _COUNTERS for cause in not_negative(f"status.{field}", status.get(field))]
    causes += _validate_conditions(job, old)
    finished = any(is_condition_true(job, kind) for kind in _TERMINAL)
    if finished:
        causes += _validate_finished(job, status)
    if status.get("completionTime") and not is_condition_true(job, "Complete"):
        detail = "completionTime can only be set for a complete job"
        causes.append(invalid("status.completionTime", status["completionTime"], detail))
    started, restarted = before.get("startTime"), status.get("startTime")
    if started and restarted != started and not (job["spec"].get("suspend") or is_condition_true(old, "Suspended")):
        detail = "startTime can only be removed or changed when the job is suspended"
        causes.append(invalid("status.startTime", restarted, detail))
    return causes


def _validate_conditions(job: Object, old: Object) -> list[FieldError]:
    causes: list[FieldError] = []
    if all(is_condition_true(job, kind) for kind in _TERMINAL):
        causes.append(invalid("status.conditions", "Complete", "cannot set Complete and Failed at the same time"))
    for kind, interim in (("Complete", "SuccessCriteriaMet"), ("Failed", "FailureTarget")):
        if is_condition_true(old, kind) and not is_condition_true(job, kind):
            causes.append(invalid("status.conditions", kind, f"cannot disable a terminal {kind}=True condition"))
        if is_condition_true(job, kind) and not is_condition_true(job, interim):
            causes.append(invalid("status.conditions", kind, f"cannot set {kind}=True without {interim}=True"))
    return causes


def _validate_finished(job: Object, status: Object) -> list[FieldError]:
    causes = [
        invalid(f"status.{field}", status[field], f"{field} must be 0 for a finished job")
        for field in ("active", "ready", "terminating")
        if status.get(field)
    ]
    noted = status.get("uncountedTerminatedPods") or {}
    if any(noted.values()):
        causes.append(invalid("status.uncountedTerminatedPods", noted, "must be empty for a finished job"))
    if not status.get("startTime"):
        causes.append(required("status.startTime", "startTime is required for a finished job"))
    if is_condition_true(job, "Complete") and not status.get("completionTime"):
        causes.append(required("status.completionTime", "completionTime is required for a complete job"))
    return causes
