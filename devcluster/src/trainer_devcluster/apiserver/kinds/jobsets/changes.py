"""What may change of a JobSet once it is stored, beside what rules of its schema forbid."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

from trainer.kube.field_errors import invalid
from trainer_devcluster.apiserver.kinds.causes import IMMUTABLE, unchanged
from trainer_devcluster.apiserver.kinds.editing import take_over
from trainer_devcluster.apiserver.kinds.jobsets.resizing import SIZE_FIELDS, is_resizable, validate_sizes

if TYPE_CHECKING:
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object

_SCHEDULING_METADATA = ("labels", "annotations")
_SCHEDULING_DIRECTIVES = ("nodeSelector", "tolerations", "schedulingGates")


def validate_changes(jobset: Object, old: Object, *, elastic: bool) -> list[FieldError]:
    """What is wrong with the difference between a changed JobSet and the stored one.

    Args:
        jobset: the changed JobSet.
        old: the stored one.
        elastic: whether sizes may change (feature gate ElasticJobSet).
    """
    spec, before = jobset["spec"], old["spec"]
    causes = validate_sizes(jobset, old) if elastic else []
    if _fixed_replicated_jobs(spec, before, elastic=elastic) != (before.get("replicatedJobs") or []):
        causes.append(invalid("spec.replicatedJobs", spec.get("replicatedJobs"), IMMUTABLE))
    return causes + unchanged("spec.managedBy", spec.get("managedBy"), before.get("managedBy"))


def _fixed_replicated_jobs(spec: Object, before: Object, *, elastic: bool) -> list[Object]:
    """The new replicated jobs without changes of size, and those that admission queues make to suspended JobSets."""
    fixed: list[Object] = deepcopy(spec.get("replicatedJobs") or [])
    former = {entry["name"]: entry["template"]["spec"] for entry in before.get("replicatedJobs") or []}
    is_suspended = bool(spec.get("suspend") or before.get("suspend"))
    for replicated_job in fixed:
        job_spec, job_spec_before = replicated_job["template"]["spec"], former.get(replicated_job["name"])
        if job_spec_before is None:
            continue
        if elastic and is_resizable(job_spec):
            take_over(job_spec, job_spec_before, SIZE_FIELDS)
        if is_suspended:
            _fix_scheduling(job_spec["template"], job_spec_before["template"])
    return fixed


def _fix_scheduling(template: Object, before: Object) -> None:
    for field, directives in (("metadata", _SCHEDULING_METADATA), ("spec", _SCHEDULING_DIRECTIVES)):
        former = before.get(field) or {}
        part = template.setdefault(field, {})
        take_over(part, former, directives)
        if not part and field not in before:
            del template[field]
