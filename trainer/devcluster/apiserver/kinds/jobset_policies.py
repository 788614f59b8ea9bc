"""Validation of a JobSet's success policy, failure policy and coordinator."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trainer.devcluster.apiserver.names import label_value_problems
from trainer.kube.field_errors import duplicate, forbidden, invalid, not_supported
from trainer.kube.objects import name_of

if TYPE_CHECKING:
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object

_RULE_NAME = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_MAX_RULE_NAME = 128
_RULE_NAME_TEXT = (
    "a failure policy rule name must start with an alphabetic character, optionally followed by a string of "
    "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'"
)
_GATED_ACTIONS = ("RestartJob", "RestartJobAndIgnoreMaxRestarts")
_JOB_FAILURE_REASONS = (
    "BackoffLimitExceeded",
    "DeadlineExceeded",
    "FailedIndexes",
    "MaxFailedIndexesExceeded",
    "PodFailurePolicy",
)


def validate_success_policy(spec: Object) -> list[FieldError]:
    """Check that the targets exist."""
    targets = (spec.get("successPolicy") or {}).get("targetReplicatedJobs") or []
    return _validate_targets(spec, targets, "spec.successPolicy.targetReplicatedJobs", "")


def validate_failure_policy(spec: Object) -> list[FieldError]:
    """Check names, actions, reasons and targets of the rules."""
    causes: list[FieldError] = []
    names: set[str] = set()
    for index, rule in enumerate((spec.get("failurePolicy") or {}).get("rules") or []):
        path, name = f"spec.failurePolicy.rules[{index}]", rule["name"]
        if name in names:
            causes.append(duplicate(f"{path}.name", name))
        names.add(name)
        if not _RULE_NAME.fullmatch(name) or len(name) > _MAX_RULE_NAME:
            causes.append(invalid(f"{path}.name", name, _RULE_NAME_TEXT))
        if rule["action"] in _GATED_ACTIONS:
            causes.append(forbidden(f"{path}.action", "the RestartJob feature gate is disabled"))
        causes += [
            not_supported(f"{path}.onJobFailureReasons[{position}]", reason, sorted(_JOB_FAILURE_REASONS))
            for position, reason in enumerate(rule.get("onJobFailureReasons") or [])
            if reason not in _JOB_FAILURE_REASONS
        ]
        targets = rule.get("targetReplicatedJobs") or []
        causes += _validate_targets(spec, targets, f"{path}.targetReplicatedJobs", " in failure policy")
    return causes


def validate_coordinator(obj: Object) -> list[FieldError]:
    """Check that the coordinator is a pod that will exist."""
    coordinator = obj["spec"].get("coordinator")
    if not coordinator:
        return []
    name = coordinator["replicatedJob"]
    found = next((job for job in obj["spec"].get("replicatedJobs") or [] if job["name"] == name), None)
    if found is None:
        detail = f"coordinator replicatedJob {name} does not exist"
        return [invalid("spec.coordinator.replicatedJob", name, detail)]
    job_index, pod_index = coordinator.get("jobIndex") or 0, coordinator.get("podIndex") or 0
    completions = found["template"]["spec"].get("completions")
    causes: list[FieldError] = []
    if not 0 <= job_index < found.get("replicas", 1):
        detail = f"coordinator job index {job_index} is invalid for replicatedJob {name}"
        causes.append(invalid("spec.coordinator.jobIndex", job_index, detail))
    if completions is None or found["template"]["spec"]["completionMode"] != "Indexed":
        detail = "the coordinator's replicatedJob must have completionMode Indexed and completions set"
        causes.append(invalid("spec.coordinator.replicatedJob", name, detail))
    elif not 0 <= pod_index < completions:
        detail = f"coordinator pod index {pod_index} is invalid for replicatedJob {name} jobIndex {job_index}"
        causes.append(invalid("spec.coordinator.podIndex", pod_index, detail))
    return causes or _validate_endpoint(obj, name, job_index, pod_index)


def _validate_endpoint(obj: Object, replicated_job: str, job_index: int, pod_index: int) -> list[FieldError]:
    subdomain = (obj["spec"].get("network") or {}).get("subdomain") or name_of(obj)
    endpoint = f"{name_of(obj)}-{replicated_job}-{job_index}-{pod_index}.{subdomain}"
    # The endpoint is written to a label of every Job and pod.
    return [invalid("spec.coordinator", endpoint, problem) for problem in label_value_problems(endpoint)]


def _validate_targets(spec: Object, targets: list[str], path: str, where: str) -> list[FieldError]:
    known = {replicated_job["name"] for replicated_job in spec.get("replicatedJobs") or []}
    return [
        invalid(
            f"{path}[{index}]",
            target,
            f"invalid replicatedJob name '{target}'{where} does not appear in .spec.ReplicatedJobs",
        )
        for index, target in enumerate(targets)
        if target not in known
    ]
