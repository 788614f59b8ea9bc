"""Validation of new JobSets, in the order and the words of JobSet's webhook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.field_errors import invalid
from trainer.kube.objects import name_of
from trainer_devcluster.apiserver.kinds.jobs.validation import validate_manager
from trainer_devcluster.apiserver.kinds.jobsets.claims import validate_claims
from trainer_devcluster.apiserver.kinds.jobsets.policies import (
    plain,
    validate_coordinator,
    validate_failure_policy,
    validate_success_policy,
)
from trainer_devcluster.apiserver.objects.names import service_label_problems, subdomain_problems

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object, ObjectKey
    from trainer.kube.resource import Resource

_MAX_INT32 = 2**31 - 1
_LABEL_LIMIT = 63
_RANDOM = "abcde"
"""Stands for what is random in a generated name."""
_TOO_LONG = "must be no more than"
_SUBDOMAIN_TOO_LONG = ".spec.network.subdomain is too long, must be less than 63 characters"
_GROUP_NAME_TOO_LONG = ".spec.replicatedJob[].groupName is too long, must be less than 63 characters"
_JOB_NAME_TOO_LONG = "JobSet name is too long, job names generated for this JobSet will exceed 63 characters"
_POD_NAME_TOO_LONG = "JobSet name is too long, pod names generated for this JobSet will exceed 63 characters"
_IN_PLACE = "InPlaceRestart restart strategy cannot be set when InPlaceRestart feature gate is disabled"


def validate_jobset(jobset: Object, stored: Callable[[Resource, ObjectKey], Object | None]) -> list[FieldError]:
    """What is wrong with a new JobSet that has its defaults.

    Args:
        jobset: the JobSet, which fits its schema.
        stored: returns a stored object.
    """
    spec, name = jobset["spec"], _expected_name(jobset)
    replicated_jobs = spec.get("replicatedJobs") or []
    causes: list[FieldError] = []
    if (spec.get("failurePolicy") or {}).get("restartStrategy") == "InPlaceRestart":
        causes.append(plain(_IN_PLACE))
    if replicated_jobs and replicated_jobs[0].get("dependsOn") is not None:
        causes.append(plain("DependsOn can't be set for the first ReplicatedJob"))
    causes += _validate_subdomain((spec.get("network") or {}).get("subdomain") or "")
    causes += validate_manager(spec.get("managedBy"))
    for index, replicated_job in enumerate(replicated_jobs):
        causes += _validate_replicated_job(name, replicated_job, f"spec.replicatedJobs[{index}]")
        seen = {other["name"] for other in replicated_jobs[: index + 1]}
        causes += _validate_dependencies(replicated_job, seen)
    causes += validate_success_policy(spec)
    causes += validate_failure_policy(spec)
    causes += validate_coordinator(spec, name)
    return causes + validate_claims(jobset, name, stored)


def _expected_name(jobset: Object) -> str:
    prefix = jobset["metadata"].get("generateName")
    return name_of(jobset) or (f"{prefix[: _LABEL_LIMIT - len(_RANDOM)]}{_RANDOM}" if prefix else "")


def _validate_subdomain(subdomain: str) -> list[FieldError]:
    """It is the name of a Service as well as part of the names of pods."""
    if not subdomain:
        return []
    problems = [*subdomain_problems(subdomain), *_label_problems(subdomain, _SUBDOMAIN_TOO_LONG)]
    return [invalid("spec.network.subdomain", subdomain, problem) for problem in problems]


def _validate_replicated_job(jobset: str, replicated_job: Object, path: str) -> list[FieldError]:
    job_spec, name = replicated_job["template"]["spec"], replicated_job["name"]
    replicas, parallelism = replicated_job.get("replicas", 1), job_spec.get("parallelism")
    causes: list[FieldError] = []
    if replicas * (1 if parallelism is None else parallelism) > _MAX_INT32:
        rule = f"the product of replicas and parallelism must not exceed {_MAX_INT32}"
        causes.append(plain(f"{rule} for replicatedJob '{name}'"))
    group = replicated_job.get("groupName") or ""
    problems = _label_problems(group, _GROUP_NAME_TOO_LONG)
    causes += [invalid(f"{path}.groupName", group, problem) for problem in problems]
    job_name = f"{jobset}-{name}-{replicas - 1}"
    problems = _label_problems(job_name, _JOB_NAME_TOO_LONG)
    completions = job_spec.get("completions")
    if job_spec.get("completionMode") == "Indexed" and completions is not None:
        problems += _label_problems(f"{job_name}-{completions - 1}-{_RANDOM}", _POD_NAME_TOO_LONG)
    return causes + [invalid(f"{path}.name", job_name, problem) for problem in problems]


def _validate_dependencies(replicated_job: Object, seen: set[str]) -> list[FieldError]:
    return [
        plain(f"replicatedJob: {replicated_job['name']} cannot depend on replicatedJob: {dependency['name']}")
        for dependency in replicated_job.get("dependsOn") or []
        if dependency["name"] not in seen
    ]


def _label_problems(name: str, too_long: str) -> list[str]:
    """What keeps a name from being a DNS-1035 label, with a text of its own for one that is too long."""
    return [too_long if problem.startswith(_TOO_LONG) else problem for problem in service_label_problems(name)]
