"""Validation of a Job's status (batch/v1, KEP-4368): a controller may not take back what it has told.

Most rules look only at what a write changes, as the real server's do: a change of the specification may leave the
status behind for a moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.field_errors import OMITTED, duplicate, invalid, required
from trainer.kube.objects import is_condition_true
from trainer_devcluster.apiserver.kinds.causes import not_negative
from trainer_devcluster.apiserver.kinds.jobs.indexes import count_indexes, first_in_both

if TYPE_CHECKING:
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object

_COUNTERS = ("active", "succeeded", "failed", "ready", "terminating")
_CONDITIONS = "status.conditions"
_EXCLUSIVE = (
    ("Complete", "Failed", "cannot set Complete=True and Failed=true conditions"),
    ("Complete", "FailureTarget", "cannot set Complete=True and FailureTarget=true conditions"),
    ("SuccessCriteriaMet", "Failed", "cannot set SuccessCriteriaMet=True and Failed=true conditions"),
    ("SuccessCriteriaMet", "FailureTarget", "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"),
)
_INTERIM = (
    ("Failed", "FailureTarget", "cannot set Failed=True condition without the FailureTarget=true condition"),
    (
        "Complete",
        "SuccessCriteriaMet",
        "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
    ),
)


def validate_job_status(job: Object, old: Object) -> list[FieldError]:
    """What is wrong with the new status of a Job."""
    status, before = job.get("status") or {}, old.get("status") or {}
    causes = [cause for field in _COUNTERS for cause in not_negative(f"status.{field}", status.get(field))]
    causes += _validate_uncounted(status)
    causes += _validate_conditions(job)
    causes += _validate_times(job, status)
    if _is_finished(job):
        causes += _validate_finished(job, status)
    causes += _validate_indexes(job, status, before)
    if (status.get("ready") or 0) > (status.get("active") or 0):
        causes.append(invalid("status.ready", status["ready"], "cannot set more ready pods than active"))
    return causes + _validate_change(job, old)


def _is_finished(job: Object) -> bool:
    return is_condition_true(job, "Complete") or is_condition_true(job, "Failed")


def _validate_uncounted(status: Object) -> list[FieldError]:
    causes: list[FieldError] = []
    seen: set[str] = set()
    for kind in ("succeeded", "failed"):
        for index, uid in enumerate((status.get("uncountedTerminatedPods") or {}).get(kind) or []):
            path = f"status.uncountedTerminatedPods.{kind}[{index}]"
            if not uid:
                causes.append(invalid(path, uid, "must not be empty"))
            elif uid in seen:
                causes.append(duplicate(path, uid))
            seen.add(uid)
    return causes


def _validate_conditions(job: Object) -> list[FieldError]:
    causes = [
        invalid(_CONDITIONS, OMITTED, detail)
        for kind, other, detail in _EXCLUSIVE
        if is_condition_true(job, kind) and is_condition_true(job, other)
    ]
    return causes + [
        invalid(_CONDITIONS, OMITTED, detail)
        for kind, interim, detail in _INTERIM
        if is_condition_true(job, kind) and not is_condition_true(job, interim)
    ]


def _validate_times(job: Object, status: Object) -> list[FieldError]:
    path, started, completed = "status.completionTime", status.get("startTime"), status.get("completionTime")
    is_complete = is_condition_true(job, "Complete")
    causes: list[FieldError] = []
    if completed and not is_complete:
        detail = "cannot set completionTime when there is no Complete=True condition"
        causes.append(invalid(path, completed, detail))
    if is_complete and not completed:
        causes.append(required(path, "completionTime is required for Complete jobs"))
    if started and completed and completed < started:
        causes.append(invalid(path, completed, "completionTime cannot be set before startTime"))
    return causes


def _validate_finished(job: Object, status: Object) -> list[FieldError]:
    causes: list[FieldError] = []
    if status.get("active"):
        causes.append(invalid("status.active", status["active"], "active>0 is invalid for finished job"))
    # A suspended Job without completions is complete before it has started.
    if not status.get("startTime") and not (job["spec"].get("suspend") and job["spec"].get("completions") == 0):
        causes.append(required("status.startTime", "startTime is required for finished job"))
    uncounted = status.get("uncountedTerminatedPods") or {}
    if any(uncounted.values()):
        detail = "uncountedTerminatedPods needs to be empty for finished job"
        causes.append(invalid("status.uncountedTerminatedPods", uncounted, detail))
    if status.get("terminating"):
        detail = "terminating>0 is invalid for finished job"
        causes.append(invalid("status.terminating", status["terminating"], detail))
    return causes


def _validate_indexes(job: Object, status: Object, before: Object) -> list[FieldError]:
    spec, completed, failed = job["spec"], status.get("completedIndexes") or "", status.get("failedIndexes")
    completions = spec.get("completions")
    causes: list[FieldError] = []
    if completed != (before.get("completedIndexes") or ""):
        causes += _validate_list("completedIndexes", completed, completions)
        if completed and spec.get("completionMode") != "Indexed":
            detail = "cannot set non-empty completedIndexes when non-indexed completion mode"
            causes.append(invalid("status.completedIndexes", completed, detail))
    if failed is None or failed == before.get("failedIndexes"):
        return causes
    if spec.get("backoffLimitPerIndex") is None:
        detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        return [*causes, invalid("status.failedIndexes", failed, detail)]
    causes += _validate_list("failedIndexes", failed, completions)
    overlap = None if completions is None else first_in_both(completed, failed, completions)
    if overlap is not None:
        detail = f"failedIndexes and completedIndexes overlap at index: {overlap}"
        causes.append(invalid("status.failedIndexes", failed, detail))
    return causes


def _validate_list(field: str, text: str, completions: int | None) -> list[FieldError]:
    if completions is None:
        return []
    try:
        count_indexes(text, completions)
    except ValueError as error:
        return [invalid(f"status.{field}", text, f"error parsing {field}: {error}")]
    return []


def _validate_change(job: Object, old: Object) -> list[FieldError]:
    """What a status may not take back."""
    spec, status, before = job["spec"], job.get("status") or {}, old.get("status") or {}
    causes = [
        invalid(_CONDITIONS, OMITTED, f"cannot disable the terminal {kind}=True condition")
        for kind in ("Failed", "Complete", "FailureTarget")
        if is_condition_true(old, kind) and not is_condition_true(job, kind)
    ]
    is_elastic = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    for counter in ("failed",) if is_elastic else ("failed", "succeeded"):
        count = status.get(counter) or 0
        if count < (before.get(counter) or 0):
            causes.append(invalid(f"status.{counter}", count, f"cannot decrease the {counter} counter"))
    completed, formerly = status.get("completionTime"), before.get("completionTime")
    if completed and formerly and completed != formerly:
        causes.append(invalid("status.completionTime", completed, "completionTime cannot be mutated"))
    started = before.get("startTime")
    is_resumed = is_condition_true(old, "Suspended") and not is_condition_true(job, "Suspended")
    if started and status.get("startTime") != started and not spec.get("suspend") and not is_resumed:
        causes.append(required("status.startTime", "startTime cannot be removed for unsuspended job"))
    if is_condition_true(old, "SuccessCriteriaMet") and not is_condition_true(job, "SuccessCriteriaMet"):
        causes.append(invalid(_CONDITIONS, OMITTED, "cannot disable the SuccessCriteriaMet=True condition"))
    return causes
