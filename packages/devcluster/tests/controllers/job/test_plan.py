"""What to do next for a Job: a pure function of the Job, its pods and the time."""

from __future__ import annotations

from typing import Any

import pytest

from packages.devcluster.tests.controllers.job.samples import NOW, ago, condition, make_job, make_pod, make_state
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
        pytest.param(make_job(), [], (0, 1), id="new job"),
        pytest.param(make_job(), [make_pod("a", index=1)], (0,), id="one index is taken"),
        pytest.param(make_job(parallelism=1), [], (0,), id="parallelism limits"),
        pytest.param(make_job(), [make_pod("a", "Failed", index=0)], (0, 1), id="a failed index is pending again"),
        pytest.param(
            make_job({"completedIndexes": "0"}),
            [make_pod("a", "Succeeded", index=0, tracked=False)],
            (1,),
            id="done index",
        ),
        pytest.param(
            make_job(), [make_pod("a", deleting=True, index=0)], (0, 1), id="terminating pod is replaced at once"
        ),
        pytest.param(
            make_job(podReplacementPolicy="Failed"),
            [make_pod("a", deleting=True, index=0)],
            (1,),
            id="terminating pod keeps its place until it has failed",
        ),
        pytest.param(make_job(completionMode="NonIndexed"), [make_pod("a")], (None,), id="pods without index"),
        pytest.param(make_job(**QUEUE), [], (None, None), id="work queue"),
        pytest.param(
            make_job({"succeeded": 1}, **QUEUE),
            [make_pod("a", "Succeeded", tracked=False)],
            (),
            id="work queue after a success",
        ),
        pytest.param(
            make_job(parallelism=4, completions=4),
            [make_pod("a", index=0), make_pod("b", index=1)],
            (2, 3),
            id="scaled up",
        ),
        pytest.param(
            make_job({"completedIndexes": "0", "succeeded": 1}),
            [make_pod("c", "Succeeded", index=1, tracked=False), make_pod("d", deleting=True, index=1)],
            (1,),
            id="scaled down and up: an index is done again",
        ),
    ],
)
def test_missing_pods(job: Object, pods: list[Object], missing: tuple[int | None, ...]) -> None:
    """The lowest pending indexes come first, as many as parallelism and completions allow."""
    assert scaled(job, *pods) == Scaling(missing=missing)


@pytest.mark.parametrize(
    ("job", "pods", "surplus"),
    [
        pytest.param(
            make_job(parallelism=1),
            [make_pod("running", "Running", index=0, ready=True), make_pod("pending", index=1)],
            ["pending"],
            id="the least valuable pod goes",
        ),
        pytest.param(
            make_job(),
            [make_pod("a", index=0), make_pod("b", "Running", index=0)],
            ["a"],
            id="two pods of one index",
        ),
        pytest.param(make_job(), [make_pod("a", index=2), make_pod("b", index=0)], ["a"], id="index out of range"),
        pytest.param(make_job({"completedIndexes": "0"}), [make_pod("a", index=0)], ["a"], id="index already done"),
        pytest.param(
            make_job(parallelism=1, completions=1),
            [make_pod("a", index=0), make_pod("d", "Running", index=3, ready=True), make_pod("b", index=1)],
            ["d", "b"],
            id="scaled down: the highest index first, whatever it has achieved",
        ),
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


def test_job_in_its_desired_state_needs_nothing() -> None:
    """A reconcile that finds nothing to do writes nothing."""
    assert plan(make_job(RUNNING), make_pod("a", index=0), make_pod("b", index=1)) == JobPlan()


def test_success_is_stored_before_the_pod_is_released() -> None:
    """The completed index is in the status first; then the finalizer goes; then all is counted."""
    succeeded, other = make_pod("a", "Succeeded", index=0), make_pod("b", index=1)
    counted = {**RUNNING, "active": 1, "succeeded": 1, "completedIndexes": "0"}

    assert plan(make_job(RUNNING), succeeded, other).status == counted
    assert plan(make_job(counted), succeeded, other) == JobPlan(release=(succeeded,))
    assert plan(make_job(counted), make_pod("a", "Succeeded", index=0, tracked=False), other) == JobPlan()


def test_failure_passes_through_the_uncounted_pods() -> None:
    """A failed pod is noted by uid, released, and only then counted: a crash in between loses and doubles nothing."""
    job_spec: dict[str, Any] = {"parallelism": 1, "completions": 1, "backoffLimit": 3}
    failed, replacement = make_pod("a", "Failed", index=0), make_pod("b", index=0)
    running = {**RUNNING, "active": 1}
    noted = {**running, "uncountedTerminatedPods": {"failed": ["a"]}}

    assert plan(make_job(running, **job_spec), failed, replacement).status == noted
    assert plan(make_job(noted, **job_spec), failed, replacement) == JobPlan(release=(failed,))
    released = make_pod("a", "Failed", index=0, tracked=False)
    counted = {**running, "failed": 1}
    assert plan(make_job(noted, **job_spec), released, replacement).status == counted
    assert plan(make_job(noted, **job_spec), replacement).status == counted
    assert plan(make_job(counted, **job_spec), released, replacement) == JobPlan()


def test_failed_job_deletes_what_runs_and_ends_in_two_steps() -> None:
    """FailureTarget is stored before pods go; Failed follows when every pod is gone or counted."""
    failed, running = make_pod("a", "Failed", index=0), make_pod("b", "Running", index=1)
    step = plan(make_job(RUNNING), failed, running)
    assert step.status is not None
    [interim] = step.status["conditions"]
    assert (interim["type"], interim["reason"]) == ("FailureTarget", "BackoffLimitExceeded")
    assert step.status["uncountedTerminatedPods"] == {"failed": ["a"]}
    assert names(step.release) == ["a"]
    assert not step.changes_pods

    job = make_job(step.status)
    assert plan(job, failed, running) == JobPlan(delete=(running,))

    released, leaving = (
        make_pod("a", "Failed", index=0, tracked=False),
        make_pod("b", "Running", index=1, deleting=True),
    )
    step = plan(job, released, leaving)
    assert step.status is not None
    assert (step.status["failed"], step.status["terminating"]) == (1, 1)
    assert step.status["uncountedTerminatedPods"] == {"failed": ["b"]}
    assert names(step.release) == ["b"]

    step = plan(make_job(step.status), released)
    assert step.status is not None
    assert [entry["type"] for entry in step.status["conditions"]] == ["FailureTarget", "Failed"]
    assert step.status["conditions"][1]["message"] == "Job has reached the specified backoff limit"
    assert (step.status["failed"], step.status["terminating"], step.status["ready"]) == (2, 0, 0)
    assert "active" not in step.status
    assert "completionTime" not in step.status


def test_reason_of_a_failure_is_what_came_first() -> None:
    """Pods that the deadline ends do not exceed the back-off limit."""
    started = {**RUNNING, "startTime": ago(60)}
    job_spec: dict[str, Any] = {"activeDeadlineSeconds": 30, "backoffLimit": 0}
    running = make_pod("a", "Running", index=0)
    step = plan(make_job(started, **job_spec), running)
    assert step.status is not None
    assert [entry["reason"] for entry in step.status["conditions"]] == ["DeadlineExceeded"]

    job = make_job(step.status, **job_spec)
    assert plan(job, running) == JobPlan(delete=(running,))
    step = plan(job, make_pod("a", "Running", index=0, deleting=True))
    assert step.status is not None
    assert [entry["reason"] for entry in step.status["conditions"]] == ["DeadlineExceeded"]


def test_replacement_waits_for_the_back_off() -> None:
    """Until the pause is over nothing is made, and the reconcile comes back then."""
    failed = make_pod("a", "Failed", index=0, tracked=False, finished=NOW_TEXT)
    status = {**RUNNING, "failed": 1, "active": 0}
    del status["active"]
    step = plan(make_job(status, completions=1, parallelism=1, backoffLimit=3), failed)
    assert step == JobPlan(requeue_after=10.0)


def test_deadline_wakes_the_reconcile() -> None:
    """Time alone ends the Job, so the plan says when."""
    job = make_job(RUNNING, activeDeadlineSeconds=30)
    assert plan(job, make_pod("a", index=0), make_pod("b", index=1)) == JobPlan(requeue_after=30.0)


def test_deleted_job_only_releases_its_pods() -> None:
    """A foreground deletion waits for the pods, which nobody counts any more."""
    job = make_job(RUNNING)
    job["metadata"]["deletionTimestamp"] = NOW_TEXT
    pod = make_pod("a", "Running", index=0)
    assert plan(job, pod) == JobPlan(release=(pod,))


def test_finished_job_is_left_alone() -> None:
    """No pod is made and no status written after the terminal condition."""
    assert plan(make_job({"conditions": [condition("Complete")]})) == JobPlan()


def test_ignored_pod_is_released_without_being_counted() -> None:
    """A failure policy may leave a disrupted pod out of the account."""
    rules = [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [1]}}]
    status = {**RUNNING, "active": 1}
    job = make_job(status, completions=1, parallelism=1, podFailurePolicy={"rules": rules})
    ignored, replacement = make_pod("a", "Failed", index=0), make_pod("b", index=0)
    assert plan(job, ignored, replacement) == JobPlan(release=(ignored,))


def test_scaling_down_forgets_indexes_and_counts_no_failure() -> None:
    """Pods beyond the new size are withdrawn; the status then only knows the indexes that are left."""
    status = {**RUNNING, "active": 3, "ready": 3, "succeeded": 1, "completedIndexes": "3"}
    job = make_job(status, parallelism=1, completions=1)
    pods = [make_pod(name, "Running", index=index, ready=True) for index, name in enumerate("abc")]
    assert names(plan(job, *pods).withdraw) == ["c", "b"]

    leaving = [
        make_pod(name, "Running", index=index, tracked=False, deleting=True) for index, name in ((1, "b"), (2, "c"))
    ]
    step = plan(job, pods[0], *leaving)
    assert step == JobPlan(status={**RUNNING, "active": 1, "ready": 1, "terminating": 2})


def test_failures_of_indexes_that_are_gone_are_not_counted() -> None:
    """They do not bring the Job closer to its back-off limit."""
    failed, running = make_pod("c", "Failed", index=2), make_pod("a", index=0)
    job = make_job({**RUNNING, "active": 1}, parallelism=1, completions=1)
    assert plan(job, failed, running) == JobPlan(release=(failed,))


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


def test_success_policy_that_is_met_is_not_undone_by_a_new_size() -> None:
    """Scaled up or down while its pods end, the Job still completes, and makes no pod."""
    met = condition("SuccessCriteriaMet", "SuccessPolicy", "Matched rules at index 0")
    status = {**RUNNING, "succeeded": 1, "completedIndexes": "1", "conditions": [met]}
    del status["active"]
    for size in (1, 5):
        job = make_job(status, parallelism=size, completions=size, successPolicy={"rules": [{"succeededCount": 1}]})
        step = plan(job)
        assert step.status is not None
        assert step.status["conditions"][1]["type"] == "Complete"
        assert not step.create


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


@pytest.mark.parametrize(
    ("status", "pod"),
    [
        pytest.param({}, make_pod("d", "Running", index=0, tracked=False, deleting=True, finished=ago(1)), id="going"),
        pytest.param({}, failed(1), id="ended by the signal that asked it to end"),
        pytest.param({"failed": 1}, make_pod("d", "Failed", index=2, tracked=False), id="index that is gone"),
    ],
)
def test_pods_that_were_withdrawn_cause_no_pause(status: Object, pod: Object) -> None:
    """A Job that was suspended or scaled down and is wanted again starts at once, though its old pods still end."""
    assert delay_of(make_job(status), pod) == 0


def test_base_and_cap_are_options() -> None:
    """Tests and impatient people shorten the pause."""
    options = ControllerOptions(pod_backoff_base=0.5, pod_backoff_cap=1.5)
    assert delay_of(make_job({"failed": 1}), failed(0), options=options) == 0.5
    assert delay_of(make_job({"failed": 4}), *[failed(0, str(n)) for n in range(4)], options=options) == 1.5
