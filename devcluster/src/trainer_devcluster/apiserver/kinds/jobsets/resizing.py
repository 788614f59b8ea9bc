"""Resizing the Jobs of a JobSet while it runs (feature gate ElasticJobSet of JobSet, which takes it from KEP-3715)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainer.kube.field_errors import forbidden, invalid
from trainer.kube.objects import is_condition_true

if TYPE_CHECKING:
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object

SIZE_FIELDS = ("parallelism", "completions")
"""What of a Job's specification changes when it is resized."""
_TERMINAL_CONDITIONS = ("Completed", "Failed")
_ENDED = "Cannot mutate parallelism or completions when JobSet is in a terminal state (Completed or Failed)"
_UNEQUAL = "completions must be equal to parallelism for Elastic Indexed Jobs"


def is_resizable(job_spec: Object) -> bool:
    """Whether Jobs of this specification may be resized: their pods have indexes."""
    return bool(job_spec.get("completionMode") == "Indexed")


def validate_sizes(jobset: Object, old: Object) -> list[FieldError]:
    """What is wrong with new sizes of replicated jobs that were there before."""
    has_ended = any(is_condition_true(old, kind) for kind in _TERMINAL_CONDITIONS)
    former = {entry["name"]: entry["template"]["spec"] for entry in old["spec"].get("replicatedJobs") or []}
    causes: list[FieldError] = []
    for index, entry in enumerate(jobset["spec"].get("replicatedJobs") or []):
        job_spec, before = entry["template"]["spec"], former.get(entry["name"])
        if before is None or not is_resizable(job_spec):
            continue
        changed = {field: job_spec.get(field) for field in SIZE_FIELDS if job_spec.get(field) != before.get(field)}
        path = f"spec.replicatedJobs[{index}].template.spec"
        if changed and has_ended:
            causes.append(forbidden(path, _ENDED))
        elif changed:
            causes += _validate_size(job_spec, changed, path)
    return causes


def _validate_size(job_spec: Object, changed: dict[str, Any], path: str) -> list[FieldError]:
    causes = [
        invalid(f"{path}.{field}", value, f"{field} must be >= 1")
        for field, value in changed.items()
        if value is not None and value < 1
    ]
    parallelism, completions = (job_spec.get(field) for field in SIZE_FIELDS)
    if None not in (parallelism, completions) and parallelism != completions:
        causes.append(invalid(f"{path}.completions", completions, _UNEQUAL))
    return causes
