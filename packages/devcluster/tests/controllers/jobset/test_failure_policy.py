from __future__ import annotations

from typing import Any

import pytest

from packages.devcluster.tests.controllers.jobset.samples import (
    NOW,
    conditions_of,
    failed,
    make_job,
    make_jobset,
    make_replicated_job,
)
from trainer_devcluster.controllers.jobset.failure_policy import apply_failure_policy
from trainer_devcluster.controllers.jobset.status_draft import StatusDraft
from trainer_devcluster.controllers.options import ReconcileEvent


def ruled(policy: dict[str, Any] | None, status: dict[str, Any] | None = None) -> StatusDraft:
    """The status after js-a-0 failed 9 s ago (deadline) and js-b-0 5 s ago (back-off limit)."""
    spec = {} if policy is None else {"failurePolicy": policy}
    jobset = make_jobset(make_replicated_job("a"), make_replicated_job("b"), status=status, **spec)
    jobs = [
        make_job(jobset, "b", status=failed(5)),
        make_job(jobset, "a", status=failed(9, "DeadlineExceeded", "exit code 42")),
    ]
    draft = StatusDraft(jobset, NOW)
    apply_failure_policy(draft, jobset, jobs)
    return draft


def test_policy_without_rules_restarts() -> None:
    """Restarts count until maxRestarts is reached."""
    draft = ruled({"maxRestarts": 1})
    message = "applying RestartJobSet failure policy action (first failed job: js-a-0)"
    assert (draft.status["restarts"], draft.status["restartsCountTowardsMax"]) == (1, 1)
    assert conditions_of(draft.status) == {"RestartingJobSet": ("True", "DefaultFailurePolicy")}
    assert draft.events[-1] == ReconcileEvent("Warning", "RestartJobSetFailurePolicyAction", message)

    draft = ruled({"maxRestarts": 1}, {"restarts": 3, "restartsCountTowardsMax": 1})
    assert conditions_of(draft.status) == {"Failed": ("True", "ReachedMaxRestarts")}
    assert draft.status["restarts"] == 3


@pytest.mark.parametrize(
    "match",
    [
        pytest.param({"onJobFailureReasons": ["BackoffLimitExceeded"]}, id="reason"),
        pytest.param({"onJobFailureMessagePatterns": ["[broken", "^m$"]}, id="message pattern"),
    ],
)
def test_first_matching_rule_decides(match: dict[str, Any]) -> None:
    """A rule looks at all failed Jobs, and the later rules do not matter."""
    rules = [
        {"name": "never", "action": "RestartJobSet", "onJobFailureReasons": ["PodFailurePolicy"]},
        {"name": "mine", "action": "FailJobSet", **match},
        {"name": "all", "action": "RestartJobSet"},
    ]
    draft = ruled({"maxRestarts": 5, "rules": rules})
    assert conditions_of(draft.status) == {"Failed": ("True", "FailJobSetFailurePolicyAction")}
    assert draft.status["conditions"][0]["message"].endswith("(first failed job: js-b-0)")
