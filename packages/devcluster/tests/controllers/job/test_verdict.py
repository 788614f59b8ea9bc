"""Whether a Job has succeeded or failed, and why (batch/v1 Job, conditions SuccessCriteriaMet and FailureTarget)."""

from __future__ import annotations

import pytest

from packages.devcluster.tests.controllers.job.samples import ago, make_job, make_pod, make_state
from trainer.kube.objects import Object
from trainer_devcluster.controllers.job.accounts import settle
from trainer_devcluster.controllers.job.verdict import (
    FAILURE_TARGET,
    JobEnd,
    reach_verdict,
)

BACKOFF = JobEnd(FAILURE_TARGET, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
IN_PLACE = {"restartPolicy": "OnFailure"}


def verdict(job: Object, *pods: Object) -> JobEnd | None:
    state = make_state(job, *pods)
    return reach_verdict(state, settle(state))


@pytest.mark.parametrize(
    ("job", "pods", "expected"),
    [
        pytest.param(
            make_job(pod_spec=IN_PLACE), [make_pod("a", "Running", index=0, restarts=1)], BACKOFF, id="restart, limit 0"
        ),
        pytest.param(
            make_job({"startTime": ago(9)}, activeDeadlineSeconds=10), [make_pod("a")], None, id="before the deadline"
        ),
    ],
)
def test_verdict_follows_from_the_pods(job: Object, pods: list[Object], expected: JobEnd | None) -> None:
    """Reasons and messages are those of Kubernetes: the rules of JobSets match on them."""
    assert verdict(job, *pods) == expected


def test_failure_policy_fails_the_job_at_once() -> None:
    """A FailJob rule does not wait for the back-off limit."""
    rules = [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3]}}]
    job = make_job(backoffLimit=6, podFailurePolicy={"rules": rules}, podReplacementPolicy="Failed")
    message = "Container c for pod n/a failed with exit code 3 matching FailJob rule at index 0"
    expected = JobEnd(FAILURE_TARGET, "PodFailurePolicy", message)
    assert verdict(job, make_pod("a", "Failed", index=0, exit_code=3)) == expected
