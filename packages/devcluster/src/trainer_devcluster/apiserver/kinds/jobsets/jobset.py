"""JobSets: what the webhooks of JobSet do; the schema and its rules are in `data/jobset_crd.yaml`."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from trainer.kube.field_errors import FieldError, forbidden, invalid
from trainer.kube.objects import Object, is_condition_true, name_of
from trainer.workloads import JOBSETS
from trainer_devcluster.apiserver.admission.review import denial
from trainer_devcluster.apiserver.definitions.strategy import Strategy, WriteContext
from trainer_devcluster.apiserver.kinds.fields import (
    IMMUTABLE,
    all_containers,
    dicts,
    fill,
    section,
    take_over,
    unchanged,
)
from trainer_devcluster.apiserver.kinds.jobsets.claims import default_claims
from trainer_devcluster.apiserver.kinds.jobsets.validation import validate_jobset
from trainer_kube_testing.api_semantics import statuses

_SCHEDULING_METADATA = ("labels", "annotations")
_SCHEDULING_DIRECTIVES = ("nodeSelector", "tolerations", "schedulingGates")
SIZE_FIELDS = ("parallelism", "completions")
"""The fields of a Job's specification that change when it is resized."""
_TERMINAL_CONDITIONS = ("Completed", "Failed")
_ENDED = "Cannot mutate parallelism or completions when JobSet is in a terminal state (Completed or Failed)"
_UNEQUAL = "completions must be equal to parallelism for Elastic Indexed Jobs"


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


_VALIDATING_WEBHOOK = "vjobset.kb.io"


class JobSetStrategy(Strategy):
    """The mutating and the validating webhook of jobset.x-k8s.io/v1alpha2 (pkg/webhooks of JobSet)."""

    def default(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002 - the protocol's signature
        """Fill in policies, network and Job templates; called for new JobSets."""
        spec = section(obj, "spec")
        fill(spec, successPolicy={"operator": "All"}, startupPolicy={"startupPolicyOrder": "AnyOrder"})
        fill(section(spec, "network"), enableDNSHostnames=True, publishNotReadyAddresses=True)
        for replicated_job in dicts(spec.get("replicatedJobs")):
            _default_template(section(replicated_job, "template"))
        for index, rule in enumerate(dicts((spec.get("failurePolicy") or {}).get("rules"))):
            if not rule.get("name"):
                rule["name"] = f"failurePolicyRule{index}"
        default_claims(spec)

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        """Check what goes beyond the schema: names that are to be made, references, features behind gates.

        Raises:
            ApiError: 422, something is wrong, in the words of a webhook that denies a request.
        """
        return _denied(obj, validate_jobset(obj, context.stored))

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        """Check that the replicated jobs are the same, but for scheduling directives while suspended, and sizes.

        Raises:
            ApiError: 422, as `validate`.
        """
        if context.subresource is not None:
            return []
        return _denied(obj, validate_changes(obj, old, elastic=context.gates.elastic_job_set))


def _denied(obj: Object, causes: Sequence[FieldError]) -> list[FieldError]:
    if causes:
        raise denial(_VALIDATING_WEBHOOK, statuses.invalid(JOBSETS.kind, JOBSETS.group, name_of(obj), causes).status)
    return []


def _default_template(template: Object) -> None:
    job_spec = section(template, "spec")
    pod_template = section(job_spec, "template")
    fill(job_spec, completionMode="Indexed")
    fill(section(pod_template, "spec"), restartPolicy="OnFailure")
    # The webhook answers with Go's serialisation of the object, in which these structs are never absent.
    fill(template, metadata={})
    fill(pod_template, metadata={})
    for container in all_containers(pod_template["spec"]):
        fill(container, resources={})
