"""Whether a Job has succeeded or failed, and why (batch/v1 Job, conditions SuccessCriteriaMet and FailureTarget)."""

from __future__ import annotations

from typing import Any

import pytest

from packages.devcluster.tests.controllers.job.samples import ago, condition, make_job, make_pod, make_state
from trainer.kube.objects import Object
from trainer_devcluster.controllers.job.accounts import settle
from trainer_devcluster.controllers.job.verdict import (
    FAILURE_TARGET,
    SUCCESS_CRITERIA_MET,
    JobEnd,
    reach_verdict,
)

BACKOFF = JobEnd(FAILURE_TARGET, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
DEADLINE = JobEnd(FAILURE_TARGET, "DeadlineExceeded", "Job was active longer than specified deadline")
COMPLETE = JobEnd(SUCCESS_CRITERIA_MET, "CompletionsReached", "Reached expected number of succeeded pods")
IN_PLACE = {"restartPolicy": "OnFailure"}


def verdict(job: Object, *pods: Object) -> JobEnd | None:
    state = make_state(job, *pods)
    return reach_verdict(state, settle(state))


@pytest.mark.parametrize(
    ("job", "pods", "expected"),
    [
        pytest.param(make_job(), [], None, id="nothing has happened"),
        pytest.param(make_job(), [make_pod("a", "Failed", index=0)], BACKOFF, id="first failure, limit 0"),
        pytest.param(make_job(backoffLimit=1), [make_pod("a", "Failed", index=0)], None, id="failure within the limit"),
        pytest.param(
            make_job({"failed": 1}, backoffLimit=1), [make_pod("a", "Failed", index=0)], BACKOFF, id="failures add up"
        ),
        pytest.param(
            make_job(pod_spec=IN_PLACE), [make_pod("a", "Running", index=0, restarts=0)], None, id="first run in place"
        ),
        pytest.param(
            make_job(pod_spec=IN_PLACE), [make_pod("a", "Running", index=0, restarts=1)], BACKOFF, id="restart, limit 0"
        ),
        pytest.param(
            make_job(pod_spec=IN_PLACE, backoffLimit=3),
            [make_pod("a", "Running", index=0, restarts=1), make_pod("b", "Running", index=1, restarts=2)],
            BACKOFF,
            id="restarts of all pods add up",
        ),
        pytest.param(
            make_job(pod_spec=IN_PLACE, backoffLimit=3),
            [make_pod("a", "Running", index=0, restarts=1), make_pod("b", "Running", index=1, restarts=1)],
            None,
            id="restarts within the limit",
        ),
        pytest.param(
            make_job({"startTime": ago(9)}, activeDeadlineSeconds=10), [make_pod("a")], None, id="before the deadline"
        ),
        pytest.param(
            make_job({"startTime": ago(10)}, activeDeadlineSeconds=10), [make_pod("a")], DEADLINE, id="at the deadline"
        ),
        pytest.param(
            make_job({"startTime": ago(10)}, activeDeadlineSeconds=10, suspend=True),
            [],
            None,
            id="suspended: no deadline",
        ),
        pytest.param(
            make_job(),
            [make_pod("a", "Succeeded", index=0), make_pod("b", index=1)],
            None,
            id="one of two has succeeded",
        ),
        pytest.param(
            make_job(),
            [make_pod("a", "Succeeded", index=0), make_pod("b", "Succeeded", index=1)],
            COMPLETE,
            id="all have succeeded",
        ),
        pytest.param(
            make_job(),
            [make_pod("a", "Succeeded", index=0), make_pod("b", "Succeeded", index=0)],
            None,
            id="an index counts once",
        ),
        pytest.param(
            make_job(completionMode="NonIndexed", completions=None),
            [make_pod("a", "Succeeded"), make_pod("b", "Running")],
            None,
            id="work queue with a pod that still runs",
        ),
        pytest.param(
            make_job(completionMode="NonIndexed", completions=None),
            [make_pod("a", "Succeeded")],
            COMPLETE,
            id="work queue",
        ),
        pytest.param(make_job(completions=0), [], COMPLETE, id="nothing to do"),
    ],
)
def test_verdict_follows_from_the_pods(job: Object, pods: list[Object], expected: JobEnd | None) -> None:
    """Reasons and messages are those of Kubernetes: the rules of JobSets match on them."""
    assert verdict(job, *pods) == expected


def test_stored_verdict_stands() -> None:
    """What has been decided is not decided again, whatever the pods do."""
    job = make_job({"conditions": [condition(FAILURE_TARGET, "DeadlineExceeded", "late")]})
    pods = [make_pod("a", "Succeeded", index=0), make_pod("b", "Succeeded", index=1)]
    assert verdict(job, *pods) == JobEnd(FAILURE_TARGET, "DeadlineExceeded", "late")


def test_failure_policy_fails_the_job_at_once() -> None:
    """A FailJob rule does not wait for the back-off limit."""
    rules = [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3]}}]
    job = make_job(backoffLimit=6, podFailurePolicy={"rules": rules}, podReplacementPolicy="Failed")
    message = "Container c for pod n/a failed with exit code 3 matching FailJob rule at index 0"
    expected = JobEnd(FAILURE_TARGET, "PodFailurePolicy", message)
    assert verdict(job, make_pod("a", "Failed", index=0, exit_code=3)) == expected


@pytest.mark.parametrize(
    ("rule", "matches"),
    [
        pytest.param({"succeededIndexes": "0"}, True, id="leader has succeeded"),
        pytest.param({"succeededIndexes": "1-2"}, False, id="others have not"),
        pytest.param({"succeededCount": 1}, True, id="enough of any"),
        pytest.param({"succeededIndexes": "0-2", "succeededCount": 2}, False, id="not enough of the listed"),
        pytest.param({"succeededIndexes": "1-2", "succeededCount": 0}, True, id="none of the listed, but one at all"),
        pytest.param({"succeededIndexes": "3-4"}, False, id="scaled down: listed indexes are gone"),
        pytest.param({"succeededIndexes": "0,3-4"}, True, id="scaled down: those that are left count"),
    ],
)
def test_success_policy_ends_the_job_early(rule: dict[str, Any], matches: bool) -> None:
    """A matching rule is a success although pods are still running."""
    job = make_job(completions=3, parallelism=3, successPolicy={"rules": [rule]})
    pods = [make_pod("a", "Succeeded", index=0), make_pod("b", "Running", index=1)]
    expected = JobEnd(SUCCESS_CRITERIA_MET, "SuccessPolicy", "Matched rules at index 0")
    assert verdict(job, *pods) == (expected if matches else None)


def test_success_policy_needs_a_success() -> None:
    """A rule that asks for no success at all is met by the first one, not by none."""
    job = make_job(successPolicy={"rules": [{"succeededIndexes": "0", "succeededCount": 0}]})
    assert verdict(job, make_pod("a", "Running", index=0)) is None


def test_scaling_down_to_what_is_done_completes_the_job() -> None:
    """The indexes that are left have all succeeded; those that are gone count no more."""
    status = {"completedIndexes": "0,2", "succeeded": 2}
    job = make_job(status, parallelism=1, completions=1)
    assert verdict(job, make_pod("a", "Running", index=1)) is None
    assert verdict(job) == COMPLETE
