"""Whether a Job has succeeded or failed, and why (batch/v1 Job, conditions SuccessCriteriaMet and FailureTarget)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from trainer.kube.objects import Object, find_condition, has_finished
from trainer_devcluster.controllers.job.accounts import Accounts
from trainer_devcluster.controllers.job.pod_failure_policy import Action, counts_as_failed, match_failure_policy
from trainer_devcluster.controllers.job.pods import parse_indexes, restart_count
from trainer_devcluster.controllers.job.spec import JobObservation, start_time_of

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


BACKOFF_LIMIT = JobEnd(FAILURE_TARGET, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
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
        return BACKOFF_LIMIT
    if not state.spec.restarts_in_place:
        return None
    restarts = sum(restart_count(pod) for pod in state.pods if not has_finished(pod))
    # A limit of 0 still allows the first run, which is not a restart.
    return BACKOFF_LIMIT if restarts >= max(state.spec.backoff_limit, 1) else None


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
