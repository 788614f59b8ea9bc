"""What a failed Job does to its JobSet (KEP-262, ConfigurableFailurePolicy)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from trainer.kube.objects import Object, find_condition, name_of
from trainer_devcluster.controllers.jobset.names import replicated_job_of
from trainer_devcluster.controllers.jobset.status_draft import StatusDraft
from trainer_devcluster.regular_expressions import is_found

FAIL = "FailJobSet"
RESTART = "RestartJobSet"


@dataclass(frozen=True, slots=True)
class _AppliedRule:
    """The action to take, the Job that caused it, and the name of the rule; "" when none matches."""

    action: str
    job: Object
    rule: str = ""


def apply_failure_policy(draft: StatusDraft, jobset: Object, failed: Iterable[Object]) -> None:
    """Fail or restart the JobSet because of its failed Jobs, of which there is at least one."""
    by_age = sorted(failed, key=lambda job: _failure(job)["lastTransitionTime"])
    policy = jobset["spec"].get("failurePolicy")
    if policy is None:
        _fail(draft, "FailedJobs", _naming("jobset failed due to one or more job failures", by_age[0]))
        return
    applied = _rule_for(policy, by_age)
    if applied.action == FAIL:
        _fail(
            draft,
            "FailJobSetFailurePolicyAction",
            _naming("applying FailJobSet failure policy action", applied.job),
        )
    elif applied.action == RESTART and _is_exhausted(draft, policy):
        _fail(
            draft,
            "ReachedMaxRestarts",
            _naming("jobset failed due to reaching max number of restarts", applied.job),
        )
    else:
        _restart(draft, applied)


def _rule_for(policy: Object, by_age: list[Object]) -> _AppliedRule:
    for rule in policy.get("rules") or []:
        matching = next((job for job in by_age if _matches(rule, job)), None)
        if matching is not None:
            return _AppliedRule(rule["action"], matching, rule["name"])
    return _AppliedRule(RESTART, by_age[0])


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


def _restart(draft: StatusDraft, applied: _AppliedRule) -> None:
    draft.status["restarts"] += 1
    if applied.action == RESTART:
        draft.status["restartsCountTowardsMax"] = (draft.status.get("restartsCountTowardsMax") or 0) + 1
    message = _naming(f"applying {applied.action} failure policy action", applied.job)
    reason = f"FailurePolicy_{applied.rule}" if applied.rule else "DefaultFailurePolicy"
    draft.set_true("RestartingJobSet", reason, message, "Warning")
    draft.announce("Warning", f"{applied.action}FailurePolicyAction", message)


def _fail(draft: StatusDraft, reason: str, message: str) -> None:
    draft.set_false("RestartingJobSet", "JobSetFailed", "jobset failed")
    draft.set_true("Failed", reason, message, "Warning")
    draft.status["terminalState"] = "Failed"


def _failure(job: Object) -> Object:
    condition = find_condition(job, "Failed")
    assert condition is not None
    return condition


def _naming(message: str, job: Object) -> str:
    return f"{message} (first failed job: {name_of(job)})"
