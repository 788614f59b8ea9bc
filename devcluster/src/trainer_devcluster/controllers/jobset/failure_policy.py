"""What a failed Job does to its JobSet (KEP-262, ConfigurableFailurePolicy)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cel_expr_python import cel

from trainer.kube.objects import find_condition, name_of
from trainer_devcluster.controllers.jobset.names import job_index_of, replicas_of, replicated_job_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainer.kube.objects import Object
    from trainer_devcluster.controllers.jobset.status_draft import StatusDraft

FAIL = "FailJobSet"
RESTART = "RestartJobSet"
RESTART_UNCOUNTED = "RestartJobSetAndIgnoreMaxRestarts"
RESTART_JOB = "RestartJob"
RESTART_JOB_UNCOUNTED = "RestartJobAndIgnoreMaxRestarts"
_COUNTED = (RESTART, RESTART_JOB)


_JOB_RESTARTS = "jobRestarts"
_JOB_RESTARTS_COUNTED = "jobRestartsCountTowardsMax"
JOB_RESTARTS_FIELDS = (_JOB_RESTARTS, _JOB_RESTARTS_COUNTED)
"""What the status of a replicated job tells about its Jobs, each with a number per Job."""
_MATCHES: Final = cel.NewEnv(variables={"text": cel.Type.STRING, "pattern": cel.Type.STRING}).compile(
    "text.matches(pattern)"
)


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
    elif ruling.action in _COUNTED and _is_exhausted(draft, policy):
        _fail(draft, "ReachedMaxRestarts", _blame("jobset failed due to reaching max number of restarts", ruling.job))
    elif ruling.action in (RESTART_JOB, RESTART_JOB_UNCOUNTED):
        _restart_job(draft, jobset, ruling)
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
    """Restarts of the whole and of single Jobs draw on the same budget."""
    counted: int = draft.status.get("restartsCountTowardsMax") or 0
    entries = draft.status.get("replicatedJobsStatus") or []
    counted += sum(sum(entry.get(_JOB_RESTARTS_COUNTED) or ()) for entry in entries)
    return counted >= (policy.get("maxRestarts") or 0)


def _restart_job(draft: StatusDraft, jobset: Object, ruling: _Ruling) -> None:
    name, index = replicated_job_of(ruling.job), job_index_of(ruling.job)
    replicas = next(replicas_of(entry) for entry in jobset["spec"]["replicatedJobs"] if entry["name"] == name)
    entry = next(entry for entry in draft.status["replicatedJobsStatus"] if entry["name"] == name)
    for field in (_JOB_RESTARTS, *((_JOB_RESTARTS_COUNTED,) if ruling.action == RESTART_JOB else ())):
        counts = [*(entry.get(field) or [0] * replicas)]
        counts[index] += 1
        entry[field] = counts
    message = _blame(f"applying {ruling.action} failure policy action", ruling.job)
    draft.announce("Warning", f"{ruling.action}FailurePolicyAction", message)


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


def is_found(pattern: str, text: str) -> bool:
    """Whether the pattern occurs anywhere in the text; a malformed one occurs nowhere."""
    found = _MATCHES.eval(data={"text": text, "pattern": pattern})
    return found.type() == cel.Type.BOOL and bool(found.plain_value())
