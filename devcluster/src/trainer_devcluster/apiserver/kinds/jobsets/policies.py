"""Validation of a JobSet's success policy, failure policy and coordinator, in the words of JobSet's webhook."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trainer.kube.field_errors import FieldError
from trainer_devcluster.apiserver.objects.names import label_value_problems

if TYPE_CHECKING:
    from trainer.kube.objects import Object

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
