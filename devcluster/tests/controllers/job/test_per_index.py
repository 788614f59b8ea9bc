from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from devcluster.tests.controllers.job.samples import ago, condition, make_job, make_pod, make_state
from trainer_devcluster.controllers.job.per_index import failure_annotations
from trainer_devcluster.controllers.job.plan import JobPlan, plan_job
from trainer_devcluster.controllers.job.pod_template import build_pod
from trainer_devcluster.controllers.job.pods import FAILURE_COUNT, IGNORED_FAILURE_COUNT
from trainer_devcluster.controllers.options import ControllerOptions

if TYPE_CHECKING:
    from trainer.kube.objects import Object

POLICY = {
    "rules": [
        {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [7]}},
        {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [8]}},
    ]
}
LIMIT = 2**31 - 1


def make_indexed(status: Object | None = None, **spec: Any) -> Object:
    return make_job(status, **{"backoffLimit": LIMIT, "backoffLimitPerIndex": 1, **spec})


def failed(name: str, index: int, count: int = 0, ignored: int = 0, **pod: Any) -> Object:
    """A failed pod of an index that has failed before."""
    made = make_pod(name, "Failed", index=index, **pod)
    made["metadata"]["annotations"][FAILURE_COUNT] = str(count)
    if ignored:
        made["metadata"]["annotations"][IGNORED_FAILURE_COUNT] = str(ignored)
    return made


def plan(job: Object, *pods: Object) -> JobPlan:
    return plan_job(make_state(job, *pods), ControllerOptions())


@pytest.mark.parametrize(
    ("replaced", "policy", "expected"),
    [
        pytest.param(None, None, {FAILURE_COUNT: "0"}, id="first pod"),
        pytest.param(failed("a", 0, 2), None, {FAILURE_COUNT: "3"}, id="counted"),
        pytest.param(
            failed("a", 0, 2, exit_code=8), POLICY, {FAILURE_COUNT: "2", IGNORED_FAILURE_COUNT: "1"}, id="ignored"
        ),
        pytest.param(failed("a", 0, 2, 3), POLICY, {FAILURE_COUNT: "3", IGNORED_FAILURE_COUNT: "3"}, id="both"),
    ],
)
def test_counts_are_handed_on(replaced: Object | None, policy: Object | None, expected: dict[str, str]) -> None:
    """Each pod tells how often its index has failed before it."""
    job = make_indexed(**({} if policy is None else {"podFailurePolicy": policy}))
    assert failure_annotations(job, replaced) == expected


def test_failed_pod_stays_until_its_replacement_exists() -> None:
    """Its count would be lost; the failure is noted only then."""
    job, other = make_indexed(), make_pod("b", index=1)
    step = plan(job, failed("a", 0), other)
    [made] = step.create
    assert build_pod(job, made)["metadata"]["annotations"][FAILURE_COUNT] == "1"
    assert step.release == ()

    replacement = make_pod("c", index=0)
    step = plan(job, failed("a", 0), replacement, other)
    assert step.status is not None
    assert step.status["uncountedTerminatedPods"] == {"failed": ["a"]}
    assert step.status["failedIndexes"] == ""


@pytest.mark.parametrize(
    ("pod", "spec", "failed_indexes"),
    [
        pytest.param(failed("a", 0, 1), {}, "0", id="limit reached"),
        pytest.param(failed("a", 0, exit_code=7), {"podFailurePolicy": POLICY}, "0", id="rule FailIndex"),
        pytest.param(failed("a", 0, 1, exit_code=8), {"podFailurePolicy": POLICY}, "", id="ignored"),
    ],
)
def test_failed_indexes(pod: Object, spec: Object, failed_indexes: str) -> None:
    """An index that has failed for good is not tried again, and the others go on."""
    step = plan(make_indexed(**spec), pod, make_pod("b", index=1))
    if failed_indexes:
        assert step.create == ()
        assert step.status is not None
        assert step.status["failedIndexes"] == failed_indexes
        assert "conditions" not in step.status
    else:
        assert len(step.create) == 1


def test_indexes_wait_by_themselves() -> None:
    """One that failed just now does not hold up another."""
    job = make_indexed(completions=3, parallelism=3, backoffLimitPerIndex=9)
    other, fresh, long_over = make_pod("b", index=1), failed("a", 0, finished=ago(1)), failed("c", 2, finished=ago(11))
    step = plan(job, fresh, other, long_over)
    assert [new.index for new in step.create] == [2]

    status = {"startTime": ago(60), "active": 2, "terminating": 0, "ready": 0, "uncountedTerminatedPods": {}}
    job = make_indexed({**status, "failedIndexes": ""}, completions=2, backoffLimitPerIndex=9)
    assert plan(job, failed("a", 0, finished=ago(4)), other).requeue_after == 6
    assert plan(job, failed("a", 0, 1, finished=ago(4)), other).requeue_after == 16
    assert plan(job, failed("a", 0, 1, 1, finished=ago(4)), other).requeue_after == 36


@pytest.mark.parametrize(
    ("spec", "pods", "reason"),
    [
        pytest.param(
            {"maxFailedIndexes": 0, "backoffLimitPerIndex": 0},
            [failed("a", 0), make_pod("b", index=1)],
            "MaxFailedIndexesExceeded",
            id="too many",
        ),
        pytest.param(
            {"maxFailedIndexes": 1, "backoffLimitPerIndex": 0},
            [failed("a", 0), make_pod("b", "Succeeded", index=1)],
            "FailedIndexes",
            id="all over",
        ),
        pytest.param({"backoffLimit": 0}, [failed("a", 0), make_pod("b", index=1)], "BackoffLimitExceeded", id="whole"),
    ],
)
def test_failed_indexes_fail_the_job(spec: Object, pods: list[Object], reason: str) -> None:
    """At once when they are too many, else when nothing else is left to do."""
    step = plan(make_indexed(**spec), *pods)
    assert step.status is not None
    assert [entry["reason"] for entry in step.status["conditions"]] == [reason]


def test_pods_that_a_failed_job_ends_fail_no_index() -> None:
    """What is in the status when the Job fails stays there."""
    failure = condition("FailureTarget", "MaxFailedIndexesExceeded")
    status = {"failedIndexes": "0", "failed": 1, "conditions": [failure]}
    job = make_indexed(status, maxFailedIndexes=0, backoffLimitPerIndex=0)
    step = plan(job, make_pod("b", "Running", index=1, deleting=True))
    assert step.status is not None
    assert step.status["failedIndexes"] == "0"
    assert step.status["uncountedTerminatedPods"] == {"failed": ["b"]}
