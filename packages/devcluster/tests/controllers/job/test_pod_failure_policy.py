"""The pod failure policy of a Job."""

from __future__ import annotations

from typing import Any

import pytest

from packages.devcluster.tests.controllers.job.samples import make_job, make_pod
from trainer_devcluster.controllers.job.pod_failure_policy import Action, match_failure_policy


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        pytest.param(
            {"onExitCodes": {"operator": "In", "values": [42, 3]}},
            "Container c for pod n/p failed with exit code 42 matching FailJob rule at index 1",
            id="exit code listed",
        ),
        pytest.param(
            {"onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            "Pod n/p has condition DisruptionTarget matching FailJob rule at index 1",
            id="condition",
        ),
    ],
)
def test_first_matching_rule_decides(rule: dict[str, Any], message: str) -> None:
    """The message names the rule, and JobSet's own rules may match on it."""
    never = {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [99]}}
    job = make_job(podFailurePolicy={"rules": [never, {"action": "FailJob", **rule}]})
    pod = make_pod("p", "Failed", exit_code=42)
    pod["status"]["conditions"] = [{"type": "DisruptionTarget", "status": "True"}]

    match = match_failure_policy(job, pod)

    assert match.action is Action.FAIL_JOB
    assert match.message == message
