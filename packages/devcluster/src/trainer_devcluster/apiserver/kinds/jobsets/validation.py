"""Validation of new JobSets, in the order and the words of JobSet's webhook."""

from __future__ import annotations

import re
from collections.abc import Callable

from trainer.kube.field_errors import FieldError, invalid
from trainer.kube.names import label_value_problems, subdomain_problems
from trainer.kube.objects import Object, ObjectKey, name_of
from trainer.kube.resource import Resource
from trainer_devcluster.apiserver.kinds.jobs.validation import validate_manager
from trainer_devcluster.apiserver.kinds.jobsets.claims import validate_claims
from trainer_devcluster.apiserver.objects.names import service_label_problems

_RULE_NAME = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_MAX_RULE_NAME = 128
_GATED_ACTIONS = ("RestartJob", "RestartJobAndIgnoreMaxRestarts")
_JOB_FAILURE_REASONS = (
    "BackoffLimitExceeded",
    "DeadlineExceeded",
    "FailedIndexes",
    "MaxFailedIndexesExceeded",
    "PodFailurePolicy",
)
_NOT_RESTARTABLE = (
    "RestartJob and RestartJobAndIgnoreMaxRestarts failure policy actions are not allowed when RestartJob feature gate "
    "is disabled"
)
_COORDINATOR_LABEL = "jobset.sigs.k8s.io/coordinator"


def plain(detail: str) -> FieldError:
    """A complaint of the webhook that names no field."""
    return FieldError("<nil>", f"Internal error: {detail}", "InternalError")


def validate_success_policy(spec: Object) -> list[FieldError]:
    """Check that the targets exist."""
    known = _names(spec)
    return [
        plain(f"invalid replicatedJob name '{target}' does not appear in .spec.ReplicatedJobs")
        for target in (spec.get("successPolicy") or {}).get("targetReplicatedJobs") or []
        if target not in known
    ]


def validate_failure_policy(spec: Object) -> list[FieldError]:
    """Check names, actions, reasons and targets of the rules; patterns are taken as they come."""
    rules: list[Object] = (spec.get("failurePolicy") or {}).get("rules") or []
    if any(rule["action"] in _GATED_ACTIONS for rule in rules):
        return [plain(_NOT_RESTARTABLE)]
    causes = [cause for rule in rules for cause in _validate_rule(rule, _names(spec))]
    return causes + _validate_uniqueness(rules)


def validate_coordinator(spec: Object, jobset_name: str) -> list[FieldError]:
    """Check that the coordinator is a pod that will exist and whose address fits into a label."""
    coordinator = spec.get("coordinator")
    if not coordinator:
        return []
    problem = _coordinator_problem(spec, coordinator)
    subdomain = (spec.get("network") or {}).get("subdomain") or jobset_name
    job_index, pod_index = coordinator.get("jobIndex") or 0, coordinator.get("podIndex") or 0
    endpoint = f"{jobset_name}-{coordinator['replicatedJob']}-{job_index}-{pod_index}.{subdomain}"
    problems = label_value_problems(endpoint)
    causes = [plain(problem)] if problem else []
    if problems:
        where = f'"{endpoint}" for coordinator label "{_COORDINATOR_LABEL}"'
        why = f"(long JobSet / ReplicatedJob / SubDomain name?): {', '.join(problems)}"
        causes.append(plain(f"spec will lead to invalid label value {where} {why}"))
    return causes


def _validate_rule(rule: Object, known: set[str]) -> list[FieldError]:
    name: str = rule["name"]
    problems: list[str] = []
    if not 1 <= len(name) <= _MAX_RULE_NAME:
        limits = f"at least 1 characters long and at most {_MAX_RULE_NAME} characters long"
        problems.append(
            f"invalid failure policy rule name of length {len(name)}, the rule name must be {limits}",
        )
    if not _RULE_NAME.fullmatch(name):
        problems.append(
            f"invalid failure policy rule name '{name}', a failure policy rule name must start with an alphabetic "
            "character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an "
            "alphanumeric character or '_'"
        )
    problems += [
        f"invalid replicatedJob name '{target}' in failure policy does not appear in .spec.ReplicatedJobs"
        for target in rule.get("targetReplicatedJobs") or []
        if target not in known
    ]
    problems += [
        f"invalid job failure reason '{reason}' in failure policy is not a recognized job failure reason"
        for reason in rule.get("onJobFailureReasons") or []
        if reason not in _JOB_FAILURE_REASONS
    ]
    return [plain(problem) for problem in problems]


def _validate_uniqueness(rules: list[Object]) -> list[FieldError]:
    indexes: dict[str, list[int]] = {}
    for index, rule in enumerate(rules):
        indexes.setdefault(rule["name"], []).append(index)
    repeated = {name: " ".join(map(str, same)) for name, same in indexes.items() if len(same) > 1}
    return [
        plain(f"rule names are not unique, rules with indices [{same}] all have the same name '{name}'")
        for name, same in repeated.items()
    ]


def _coordinator_problem(spec: Object, coordinator: Object) -> str:
    name = coordinator["replicatedJob"]
    found = next((job for job in spec.get("replicatedJobs") or [] if job["name"] == name), None)
    if found is None:
        return f"coordinator replicatedJob {name} does not exist"
    job_index, pod_index = coordinator.get("jobIndex") or 0, coordinator.get("podIndex") or 0
    if not 0 <= job_index < found.get("replicas", 1):
        return f"coordinator job index {job_index} is invalid for replicatedJob {name}"
    completions = found["template"]["spec"].get("completions")
    if completions is None or found["template"]["spec"].get("completionMode") != "Indexed":
        return "job for coordinator pod must be indexed completion mode, and completions number must be set"
    if not 0 <= pod_index < completions:
        return f"coordinator pod index {pod_index} is invalid for replicatedJob {name} job index {job_index}"
    return ""


def _names(spec: Object) -> set[str]:
    return {replicated_job["name"] for replicated_job in spec.get("replicatedJobs") or []}


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
