"""Whether a Job has succeeded or failed, and why (batch/v1 Job, conditions SuccessCriteriaMet and FailureTarget).

Kubernetes documentation, "Pod failure policy".
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from trainer.kube.objects import find_condition, is_being_deleted, is_condition_true, key_of
from trainer_devcluster.controllers.job.pods import (
    completion_index,
    failed_containers,
    is_finished,
    parse_indexes,
    phase_of,
    restart_count,
)
from trainer_devcluster.controllers.job.spec import start_time_of

if TYPE_CHECKING:
    from trainer.kube.objects import Object
    from trainer_devcluster.controllers.job.accounts import Accounts
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


SUCCESS_CRITERIA_MET = "SuccessCriteriaMet"
FAILURE_TARGET = "FailureTarget"
TERMINAL_CONDITION = {SUCCESS_CRITERIA_MET: "Complete", FAILURE_TARGET: "Failed"}
"""The condition that follows a verdict once all pods are gone or counted."""


@dataclass(frozen=True, slots=True)
class JobEnd:
    """How the Job ends; reason and message stand in the interim and in the terminal condition alike."""

    condition: str
    """`SuccessCriteriaMet` or `FailureTarget`."""
    reason: str
    message: str


_BACKOFF_LIMIT = JobEnd(FAILURE_TARGET, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
_DEADLINE = JobEnd(FAILURE_TARGET, "DeadlineExceeded", "Job was active longer than specified deadline")
_COMPLETIONS = JobEnd(SUCCESS_CRITERIA_MET, "CompletionsReached", "Reached expected number of succeeded pods")


def reach_verdict(state: JobObservation, accounts: Accounts) -> JobEnd | None:
    """The verdict, or None while the Job goes on; one that is in the status stands."""
    return (
        _stored(state.job)
        or _failure_policy(state)
        or _backoff_limit(state, accounts)
        or _deadline(state)
        or _success_policy(state.job, accounts)
        or _completions(state, accounts)
    )


def time_to_deadline(state: JobObservation) -> float | None:
    """Seconds until activeDeadlineSeconds have passed since the (first possible) start; None without a deadline."""
    if state.spec.active_deadline is None or state.spec.suspended:
        return None
    start = start_time_of(state.job) or state.now
    return (start + timedelta(seconds=state.spec.active_deadline) - state.now).total_seconds()


def _stored(job: Object) -> JobEnd | None:
    for kind in (SUCCESS_CRITERIA_MET, FAILURE_TARGET):
        condition = find_condition(job, kind)
        if condition is not None and condition.get("status") == "True":
            return JobEnd(kind, condition.get("reason") or "", condition.get("message") or "")
    return None


def _failure_policy(state: JobObservation) -> JobEnd | None:
    for pod in state.tracked:
        if counts_as_failed(state, pod):
            match = match_failure_policy(state.job, pod)
            if match.action is Action.FAIL_JOB:
                return JobEnd(FAILURE_TARGET, "PodFailurePolicy", match.message)
    return None


def _backoff_limit(state: JobObservation, accounts: Accounts) -> JobEnd | None:
    if accounts.total_failed > state.spec.backoff_limit:
        return _BACKOFF_LIMIT
    if not state.spec.restarts_in_place:
        return None
    restarts = sum(restart_count(pod) for pod in state.pods if not is_finished(pod))
    # A limit of 0 still allows the first run, which is not a restart.
    return _BACKOFF_LIMIT if restarts >= max(state.spec.backoff_limit, 1) else None


def _deadline(state: JobObservation) -> JobEnd | None:
    remaining = time_to_deadline(state)
    return _DEADLINE if remaining is not None and remaining <= 0 else None


def _success_policy(job: Object, accounts: Accounts) -> JobEnd | None:
    rules = (job["spec"].get("successPolicy") or {}).get("rules") or []
    if not accounts.completed_indexes:
        return None
    for index, rule in enumerate(rules):
        wanted = rule.get("succeededIndexes")
        listed = accounts.completed_indexes if wanted is None else parse_indexes(wanted, job["spec"]["completions"])
        needed = rule.get("succeededCount", len(listed))
        # An elastic Job may have lost all indexes that a rule lists; such a rule matches nothing.
        if listed and len(listed & accounts.completed_indexes) >= needed:
            return JobEnd(SUCCESS_CRITERIA_MET, "SuccessPolicy", f"Matched rules at index {index}")
    return None


def _completions(state: JobObservation, accounts: Accounts) -> JobEnd | None:
    wanted = 1 if state.spec.completions is None else state.spec.completions
    return _COMPLETIONS if not state.active and accounts.total_succeeded >= wanted else None
