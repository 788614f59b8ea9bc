"""What to do next for a Job: a pure function of the Job, its pods and the time."""

from __future__ import annotations

from typing import Any

import pytest

from packages.devcluster.tests.controllers.job.samples import NOW, ago, make_job, make_pod, make_state
from trainer.kube.clock import timestamp
from trainer.kube.objects import Object, name_of
from trainer_devcluster.controllers.job.accounts import settle
from trainer_devcluster.controllers.job.plan import JobPlan, Scaling, plan_job, replacement_delay, scale
from trainer_devcluster.controllers.options import ControllerOptions

QUEUE: dict[str, Any] = {"completionMode": "NonIndexed", "completions": None}


def scaled(job: Object, *pods: Object) -> Scaling:
    state = make_state(job, *pods)
    return scale(state, settle(state))


@pytest.mark.parametrize(
    ("job", "pods", "missing"),
    [
        pytest.param(make_job(), [make_pod("a", "Failed", index=0)], (0, 1), id="a failed index is pending again"),
        pytest.param(make_job(**QUEUE), [], (None, None), id="work queue"),
    ],
)
def test_missing_pods(job: Object, pods: list[Object], missing: tuple[int | None, ...]) -> None:
    """The lowest pending indexes come first, as many as parallelism and completions allow."""
    assert scaled(job, *pods) == Scaling(missing=missing)


@pytest.mark.parametrize(
    ("job", "pods", "surplus"),
    [
        pytest.param(make_job(), [make_pod("a", index=2), make_pod("b", index=0)], ["a"], id="index out of range"),
        pytest.param(make_job({"completedIndexes": "0"}), [make_pod("a", index=0)], ["a"], id="index already done"),
    ],
)
def test_surplus_pods(job: Object, pods: list[Object], surplus: list[str]) -> None:
    """Pods that work on nothing, or are too many, are removed before any is made."""
    scaling = scaled(job, *pods)
    assert [name_of(pod) for pod in scaling.surplus] == surplus
    assert scaling.missing == ()


def test_a_round_makes_at_most_500_pods() -> None:
    """A huge Job does not flood the API server."""
    assert len(scaled(make_job(parallelism=2000, completions=2000)).missing) == 500


RUNNING: Object = {
    "startTime": timestamp(NOW),
    "active": 2,
    "terminating": 0,
    "ready": 0,
    "uncountedTerminatedPods": {},
}
NOW_TEXT = timestamp(NOW)


def plan(job: Object, *pods: Object) -> JobPlan:
    return plan_job(make_state(job, *pods), ControllerOptions())


def names(pods: tuple[Object, ...]) -> list[str]:
    return [name_of(pod) for pod in pods]


def test_success_policy_is_stored_before_the_other_pods_go() -> None:
    """They have not failed: nothing counts them, before and after a crash in between."""
    job_spec: dict[str, Any] = {"successPolicy": {"rules": [{"succeededCount": 1}]}}
    succeeded, running = make_pod("a", "Succeeded", index=0), make_pod("b", "Running", index=1, ready=True)

    step = plan(make_job(RUNNING, **job_spec), succeeded, running)
    assert step.status is not None
    [met] = step.status["conditions"]
    assert (met["type"], met["reason"], met["message"]) == (
        "SuccessCriteriaMet", "SuccessPolicy", "Matched rules at index 0"
    )  # fmt: skip
    assert (step.status["active"], step.status["completedIndexes"]) == (1, "0")
    assert not step.changes_pods

    step = plan(make_job(step.status, **job_spec), succeeded, running)
    assert step.withdraw == (running,)

    stored = {**RUNNING, "active": 1, "ready": 1, "succeeded": 1, "completedIndexes": "0", "conditions": [met]}
    leaving = make_pod("b", "Running", index=1, tracked=False, deleting=True)
    step = plan(make_job(stored, **job_spec), succeeded, leaving)
    assert step.status is not None
    assert "failed" not in step.status
    assert (step.status["terminating"], [entry["type"] for entry in step.status["conditions"]]) == (1, [met["type"]])

    done = make_pod("a", "Succeeded", index=0, tracked=False)
    step = plan(make_job(step.status, **job_spec), done)
    assert step.status is not None
    complete = step.status["conditions"][1]
    assert (complete["type"], complete["reason"], complete["message"]) == (
        "Complete", "SuccessPolicy", "Matched rules at index 0"
    )  # fmt: skip
    assert (step.status["succeeded"], step.status["terminating"]) == (1, 0)
    assert step.status["completionTime"] == NOW_TEXT


DEFAULTS = ControllerOptions()


def delay_of(job: Object, *pods: Object, options: ControllerOptions = DEFAULTS) -> float:
    state = make_state(job, *pods)
    return replacement_delay(state, settle(state), options)


def failed(seconds_ago: float, name: str = "p") -> Object:
    return make_pod(f"{name}{seconds_ago}", "Failed", index=0, tracked=False, finished=ago(seconds_ago))


@pytest.mark.parametrize(
    ("pods", "delay"),
    [
        pytest.param([], 0, id="no failure"),
        pytest.param([failed(4)], 6, id="ten seconds after the first failure"),
        pytest.param([failed(60), failed(4)], 16, id="doubled after the second"),
        pytest.param([failed(90), failed(60), failed(45)], -5, id="already over"),
        pytest.param([failed(n) for n in range(1, 12)], 599, id="capped"),
        pytest.param(
            [failed(60), make_pod("s", "Succeeded", index=1, finished=ago(30)), failed(4)],
            6,
            id="a success starts anew",
        ),
        pytest.param(
            [make_pod("d", index=0, deleting=True, finished=ago(1))], 9, id="a deleted pod counts from its deletion"
        ),
    ],
)
def test_pause_doubles_with_every_failure_in_a_row(pods: list[Object], delay: float) -> None:
    """The pause is derived from what is stored, so a restarted controller comes to the same answer."""
    assert delay_of(make_job({"failed": len(pods)}), *pods) == pytest.approx(delay)


IGNORING = {"rules": [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [1]}}]}


@pytest.mark.parametrize(
    ("pod", "delay"),
    [
        pytest.param(failed(1), 9, id="ended by itself"),
        pytest.param(
            make_pod("w", "Failed", index=0, tracked=False, deleting=True, finished=ago(1)), 0, id="was withdrawn"
        ),
    ],
)
def test_ignored_failures_are_replaced_after_a_pause(pod: Object, delay: float) -> None:
    """A failure policy that ignores them keeps them from the back-off limit, not from the back-off."""
    assert delay_of(make_job({}, podFailurePolicy=IGNORING), pod) == delay


DISRUPTIONS_FAIL: Object = {
    "rules": [{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
}


@pytest.mark.parametrize(
    ("policy", "finished", "other", "waits"),
    [
        pytest.param({"podFailurePolicy": DISRUPTIONS_FAIL}, ago(0), "Running", 2.0, id="the other may be disrupted"),
        pytest.param({"podFailurePolicy": DISRUPTIONS_FAIL}, ago(1), "Running", 1.0, id="until a second is over"),
        pytest.param({"podFailurePolicy": DISRUPTIONS_FAIL}, ago(2), "Running", None, id="over"),
        pytest.param({"podFailurePolicy": DISRUPTIONS_FAIL}, ago(0), "Failed", None, id="all have ended"),
        pytest.param({}, ago(0), "Running", None, id="no rule could match"),
    ],
)
def test_failures_of_one_moment_are_gathered(policy: Object, finished: str, other: str, waits: float | None) -> None:
    """Before too many pods have failed, those that fail with them are waited for: a rule may match one of them."""
    failed = make_pod("a", "Failed", index=0, exit_code=1, finished=finished)
    step = plan(make_job(RUNNING, **policy), failed, make_pod("b", other, index=1))
    assert step.requeue_after == waits
    assert (step.status is None) == (waits is not None)


def test_a_disrupted_pod_is_the_reason_though_another_failed_before_it() -> None:
    """Its peers lose their connection to it and end with an error of their own."""
    peer = make_pod("a", "Failed", index=0, exit_code=1, finished=ago(1))
    evicted = make_pod("b", "Failed", index=1, exit_code=143, finished=ago(0), deleting=True)
    evicted["status"]["conditions"] = [{"type": "DisruptionTarget", "status": "True"}]
    status = plan(make_job(RUNNING, podFailurePolicy=DISRUPTIONS_FAIL), peer, evicted).status
    assert status is not None
    assert [condition["reason"] for condition in status["conditions"]] == ["PodFailurePolicy"]
