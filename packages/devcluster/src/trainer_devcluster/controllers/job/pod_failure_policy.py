"""The pod failure policy of a Job: which failed pods fail it, are ignored, or count towards its backoff limit.

Kubernetes documentation, "Pod failure policy".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from trainer.kube.objects import Object, is_being_deleted, is_condition_true, key_of
from trainer_devcluster.controllers.job.pods import completion_index, failed_containers, phase_of
from trainer_devcluster.controllers.job.spec import JobObservation


class Action(StrEnum):
    """The action of a rule on the pods that it matches."""

    FAIL_JOB = "FailJob"
    IGNORE = "Ignore"
    COUNT = "Count"


@dataclass(frozen=True, slots=True)
class RuleMatch:
    """The first rule that matches a pod, and why."""

    action: Action
    message: str


COUNTED = RuleMatch(Action.COUNT, "")
"""The match of a pod that no rule matches."""


def match_failure_policy(job: Object, pod: Object) -> RuleMatch:
    """The first rule of `spec.podFailurePolicy` that matches the failed pod, else `COUNTED`."""
    rules = (job["spec"].get("podFailurePolicy") or {}).get("rules") or []
    for index, rule in enumerate(rules):
        because = _matches_exit_code(rule, pod) or _matches_condition(rule, pod)
        if because:
            action = Action(rule["action"])
            return RuleMatch(action, f"{because} matching {action} rule at index {index}")
    return COUNTED


def _matches_exit_code(rule: Object, pod: Object) -> str:
    requirement = rule.get("onExitCodes")
    if not requirement:
        return ""
    listed = set(requirement.get("values") or [])
    wanted_name = requirement.get("containerName")
    for name, code in failed_containers(pod):
        if wanted_name in (None, name) and (code in listed) == (requirement["operator"] == "In"):
            return f"Container {name} for pod {key_of(pod)} failed with exit code {code}"
    return ""


def _matches_condition(rule: Object, pod: Object) -> str:
    wanted = {(pattern["type"], pattern.get("status") or "True") for pattern in rule.get("onPodConditions") or []}
    for condition in (pod.get("status") or {}).get("conditions") or []:
        if (condition["type"], condition.get("status")) in wanted:
            return f"Pod {key_of(pod)} has condition {condition['type']}"
    return ""


def counts_as_failed(state: JobObservation, pod: Object) -> bool:
    """Whether the Job takes the pod for failed, which may be before its containers have stopped."""
    if phase_of(pod) in ("Succeeded", "Failed"):
        return phase_of(pod) == "Failed"
    waits_for_failure = state.spec.replace_only_failed and not is_condition_true(state.job, "FailureTarget")
    return is_being_deleted(pod) and not waits_for_failure


def is_counted(state: JobObservation, pod: Object) -> bool:
    """Whether a failed pod counts: not where the Job was scaled down since, nor if its failure policy ignores it."""
    return not is_out_of_range(state, pod) and match_failure_policy(state.job, pod).action is not Action.IGNORE


def is_out_of_range(state: JobObservation, pod: Object) -> bool:
    """Whether the Job has no such index, or not any more."""
    return state.spec.indexed and not state.spec.has_index(completion_index(pod))
