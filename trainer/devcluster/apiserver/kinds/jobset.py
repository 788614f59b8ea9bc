"""JobSets: what the webhooks of JobSet do; the schema and its rules are in `data/jobset_crd.yaml`."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

from trainer.devcluster.apiserver.definitions import NameRule
from trainer.devcluster.apiserver.kinds.causes import IMMUTABLE, unchanged
from trainer.devcluster.apiserver.kinds.editing import fill, section, take_over
from trainer.devcluster.apiserver.kinds.jobset_claims import default_claims, validate_claims
from trainer.devcluster.apiserver.kinds.jobset_policies import (
    validate_coordinator,
    validate_failure_policy,
    validate_success_policy,
)
from trainer.devcluster.apiserver.kinds.jobset_resizing import SIZE_FIELDS, is_resizable, validate_sizes
from trainer.devcluster.apiserver.kinds.pod_spec import all_containers, dicts
from trainer.devcluster.apiserver.names import name_problems
from trainer.devcluster.apiserver.strategy import StoreOnlyStrategy
from trainer.kube.field_errors import forbidden, invalid
from trainer.kube.objects import annotations_of, name_of

if TYPE_CHECKING:
    from trainer.devcluster.apiserver.strategy import WriteContext
    from trainer.devcluster.feature_gates import FeatureGates
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object

_MAX_INT32 = 2**31 - 1
_GENERATED_SUFFIX = "-abcde"
"""Stands for the random end of a pod's name."""
_EXCLUSIVE_TOPOLOGY = "alpha.jobset.sigs.k8s.io/exclusive-topology"
_SCHEDULING_METADATA = ("labels", "annotations")
_SCHEDULING_DIRECTIVES = ("nodeSelector", "tolerations", "schedulingGates")
_JOB_NAME_TOO_LONG = "JobSet name is too long, job names generated for this JobSet will exceed 63 characters"
_POD_NAME_TOO_LONG = "JobSet name is too long, pod names generated for this JobSet will exceed 63 characters"
_LIMIT = 63


class JobSetStrategy(StoreOnlyStrategy):
    """The mutating and the validating webhook of jobset.x-k8s.io/v1alpha2 (pkg/webhooks of JobSet)."""

    def __init__(self, gates: FeatureGates) -> None:
        self._elastic = gates.elastic_job_set

    def default(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002 - the protocol's signature
        """Fill in policies, network and Job templates."""
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
        """Check what goes beyond the schema: names that are to be made, references, unsupported features."""
        spec = obj["spec"]
        replicated_jobs = spec.get("replicatedJobs") or []
        causes = _validate_supported(obj)
        causes += _validate_subdomain(spec)
        for index, replicated_job in enumerate(replicated_jobs):
            path = f"spec.replicatedJobs[{index}]"
            earlier = [other["name"] for other in replicated_jobs[: index + 1]]
            causes += _validate_replicated_job(obj, replicated_job, path)
            causes += _validate_dependencies(replicated_job, path, earlier, is_first=index == 0)
        causes += validate_success_policy(spec)
        causes += validate_failure_policy(spec)
        causes += validate_coordinator(obj)
        return causes + validate_claims(obj, _expected_name(obj), context.stored)

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        """Check that the replicated jobs are the same, but for scheduling directives while suspended, and sizes."""
        if context.subresource is not None:
            return []
        causes = _validate_supported(obj)
        if self._elastic:
            causes += validate_sizes(obj, old)
        if _fixed_replicated_jobs(obj, old, elastic=self._elastic) != old["spec"].get("replicatedJobs"):
            causes.append(invalid("spec.replicatedJobs", obj["spec"].get("replicatedJobs"), IMMUTABLE))
        return causes + unchanged("spec.managedBy", obj["spec"].get("managedBy"), old["spec"].get("managedBy"))


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


def _validate_supported(obj: Object) -> list[FieldError]:
    """Features that the dev cluster lacks are refused instead of ignored."""
    causes: list[FieldError] = []
    spec = obj["spec"]
    if (spec.get("failurePolicy") or {}).get("restartStrategy") == "InPlaceRestart":
        causes.append(forbidden("spec.failurePolicy.restartStrategy", "the InPlaceRestart feature gate is disabled"))
    templates = [replicated_job["template"] for replicated_job in spec.get("replicatedJobs") or []]
    if any(_EXCLUSIVE_TOPOLOGY in annotations_of(entry) for entry in (obj, *templates)):
        detail = "exclusive placement needs several nodes, and the dev cluster has one"
        causes.append(forbidden(f"metadata.annotations[{_EXCLUSIVE_TOPOLOGY}]", detail))
    return causes


def _validate_subdomain(spec: Object) -> list[FieldError]:
    subdomain = (spec.get("network") or {}).get("subdomain")
    if not subdomain:
        return []
    problems = name_problems(subdomain, NameRule.SERVICE_LABEL)
    return [invalid("spec.network.subdomain", subdomain, problem) for problem in problems]


def _validate_replicated_job(obj: Object, replicated_job: Object, path: str) -> list[FieldError]:
    job_spec = replicated_job["template"]["spec"]
    replicas, parallelism = replicated_job.get("replicas", 1), job_spec.get("parallelism") or 1
    causes: list[FieldError] = []
    if replicas * parallelism > _MAX_INT32:
        name = replicated_job["name"]
        detail = f"the product of replicas and parallelism must not exceed {_MAX_INT32} for replicatedJob '{name}'"
        causes.append(invalid(f"{path}.replicas", replicas, detail))
    group = replicated_job.get("groupName") or ""
    causes += [invalid(f"{path}.groupName", group, text) for text in name_problems(group, NameRule.SERVICE_LABEL)]
    job_name = f"{_expected_name(obj)}-{replicated_job['name']}-{max(replicas - 1, 0)}"
    causes += _made_name(f"{path}.name", job_name, _JOB_NAME_TOO_LONG)
    completions = job_spec.get("completions")
    if not causes and job_spec["completionMode"] == "Indexed" and completions:
        causes += _made_name(f"{path}.name", f"{job_name}-{completions - 1}{_GENERATED_SUFFIX}", _POD_NAME_TOO_LONG)
    return causes


def _validate_dependencies(
    replicated_job: Object, path: str, earlier: list[str], *, is_first: bool
) -> list[FieldError]:
    dependencies = replicated_job.get("dependsOn") or []
    if dependencies and is_first:
        return [forbidden(f"{path}.dependsOn", "DependsOn can't be set for the first ReplicatedJob")]
    return [
        invalid(
            f"{path}.dependsOn[{index}].name",
            dependency["name"],
            f"replicatedJob: {replicated_job['name']} cannot depend on replicatedJob: {dependency['name']}",
        )
        for index, dependency in enumerate(dependencies)
        if dependency["name"] not in earlier[:-1]
    ]


def _made_name(path: str, name: str, too_long: str) -> list[FieldError]:
    if len(name) > _LIMIT:
        return [invalid(path, name, too_long)]
    return [invalid(path, name, problem) for problem in name_problems(name, NameRule.SERVICE_LABEL)]


def _expected_name(obj: Object) -> str:
    return name_of(obj) or f"{obj['metadata'].get('generateName', '')}abcde"


def _fixed_replicated_jobs(obj: Object, old: Object, *, elastic: bool) -> list[Object]:
    """The new replicated jobs without changes of size, and those that admission queues make to suspended JobSets."""
    fixed: list[Object] = deepcopy(obj["spec"].get("replicatedJobs") or [])
    former = {entry["name"]: entry["template"]["spec"] for entry in old["spec"].get("replicatedJobs") or []}
    is_suspended = bool(obj["spec"].get("suspend") or old["spec"].get("suspend"))
    for replicated_job in fixed:
        job_spec, before = replicated_job["template"]["spec"], former.get(replicated_job["name"])
        if before is None:
            continue
        if elastic and is_resizable(job_spec):
            take_over(job_spec, before, SIZE_FIELDS)
        if is_suspended:
            template, former_template = job_spec["template"], before["template"]
            take_over(template["metadata"], former_template["metadata"], _SCHEDULING_METADATA)
            take_over(template["spec"], former_template["spec"], _SCHEDULING_DIRECTIVES)
    return fixed
