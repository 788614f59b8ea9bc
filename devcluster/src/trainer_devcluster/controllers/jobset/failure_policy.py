"""What a failed Job does to its JobSet (KEP-262, ConfigurableFailurePolicy)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.kube.objects import find_condition, name_of
from trainer_devcluster.controllers.jobset.names import replicated_job_of
from trainer_devcluster.regular_expressions import is_found

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainer.kube.objects import Object
    from trainer_devcluster.controllers.jobset.status_draft import StatusDraft

FAIL = "FailJobSet"
RESTART = "RestartJobSet"
RESTART_UNCOUNTED = "RestartJobSetAndIgnoreMaxRestarts"


@dataclass(frozen=True, slots=True)
class _Ruling:
    """The action to take, the Job that caused it, and the name of the rule; "" when none matches."""

    action: str
    job: Object
    rule: str = ""


def apply_failure_policy(draft: StatusDraft, jobset: Object, failed: Iterable[Object]) -> None:
    """Fail or restart the JobSet because of its failed Jobs, of which there is at least one."""
    by_age = sorted(failed, key=lambda job: _failure(job)["lastTransitionTime"])
    policy = jobset["spec"].get("failurePolicy")
    if policy is None:
        _fail(draft, "FailedJobs", _blame("jobset failed due to one or more job failures", by_age[0]))
        return
    ruling = _rule_on(policy, by_age)
    if ruling.action == FAIL:
        _fail(draft, "FailJobSetFailurePolicyAction", _blame("applying FailJobSet failure policy action", ruling.job))
    elif ruling.action == RESTART and _is_exhausted(draft, policy):
        _fail(draft, "ReachedMaxRestarts", _blame("jobset failed due to reaching max number of restarts", ruling.job))
    else:
        _restart(draft, ruling)


def _rule_on(policy: Object, by_age: list[Object]) -> _Ruling:
    for rule in policy.get("rules") or []:
        matching = next((job for job in by_age if _matches(rule, job)), None)
        if matching is not None:
            return _Ruling(rule["action"], matching, rule["name"])
    return _Ruling(RESTART, by_age[0])


def _matches(rule: Object, job: Object) -> bool:
    failure = _failure(job)
    reasons = rule.get("onJobFailureReasons") or []
    targets = rule.get("targetReplicatedJobs") or []
    patterns = rule.get("onJobFailureMessagePatterns") or []
    return (
        (not reasons or failure["reason"] in reasons)
        and (not targets or replicated_job_of(job) in targets)
        and (not patterns or any(is_found(pattern, failure.get("message") or "") for pattern in patterns))
    )


def _is_exhausted(draft: StatusDraft, policy: Object) -> bool:
    counted: int = draft.status.get("restartsCountTowardsMax") or 0
    return counted >= (policy.get("maxRestarts") or 0)


def _restart(draft: StatusDraft, ruling: _Ruling) -> None:
    draft.status["restarts"] += 1
    if ruling.action == RESTART:
        draft.status["restartsCountTowardsMax"] = (draft.status.get("restartsCountTowardsMax") or 0) + 1
    message = _blame(f"applying {ruling.action} failure policy action", ruling.job)
    reason = f"FailurePolicy_{ruling.rule}" if ruling.rule else "DefaultFailurePolicy"
    draft.set_true("RestartingJobSet", reason, message, "Warning")
    draft.announce("Warning", f"{ruling.action}FailurePolicyAction", message)


def _fail(draft: StatusDraft, reason: str, message: str) -> None:
    draft.set_false("RestartingJobSet", "JobSetFailed", "jobset failed")
    draft.set_true("Failed", reason, message, "Warning")
    draft.status["terminalState"] = "Failed"


def _failure(job: Object) -> Object:
    condition = find_condition(job, "Failed")
    assert condition is not None
    return condition


def _blame(message: str, job: Object) -> str:
    return f"{message} (first failed job: {name_of(job)})"
