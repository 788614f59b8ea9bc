from __future__ import annotations

import pytest

from packages.devcluster.tests.controllers.jobset.samples import (
    NOW,
    RUNNING,
    ago,
    complete,
    conditions_of,
    failed,
    make_job,
    make_jobset,
    make_replicated_job,
)
from trainer.kube.objects import Object, name_of
from trainer_devcluster.controllers.jobset.plan import JobSetPlan, plan_jobset
from trainer_devcluster.feature_gates import FeatureGates

ELASTIC = FeatureGates(elastic_job_set=True)


def plan(jobset: Object, *jobs: Object) -> JobSetPlan:
    return plan_jobset(jobset, jobs, NOW)


def names(objects: tuple[Object, ...]) -> list[str]:
    return [name_of(obj) for obj in objects]


def condition(kind: str, reason: str, value: str = "True", seconds_ago: float = 60) -> Object:
    return {"type": kind, "status": value, "reason": reason, "message": "m", "lastTransitionTime": ago(seconds_ago)}


def test_jobset_in_its_desired_state_is_left_alone() -> None:
    """Nothing but the existence of the Service is looked at again."""
    jobset = make_jobset()
    job = make_job(jobset, status=RUNNING)
    stored = make_jobset(status=plan(jobset, job).status)
    step = plan(stored, job)
    assert step == JobSetPlan(service=step.service)


@pytest.mark.parametrize(
    ("policy", "finished", "completed"),
    [
        pytest.param({"operator": "All"}, ["a"], False, id="all: one is not enough"),
        pytest.param({"operator": "All"}, ["a", "b"], True, id="all"),
        pytest.param({"operator": "Any"}, ["b"], True, id="any"),
        pytest.param({"operator": "All", "targetReplicatedJobs": ["b"]}, ["b"], True, id="target"),
        pytest.param({"operator": "Any", "targetReplicatedJobs": ["b"]}, ["a"], False, id="not the target"),
    ],
)
def test_success_policy(policy: Object, finished: list[str], completed: bool) -> None:
    """The JobSet completes when enough Jobs of the targets have."""
    jobset = make_jobset(make_replicated_job("a"), make_replicated_job("b"), successPolicy=policy)
    jobs = [make_job(jobset, name, status=complete() if name in finished else RUNNING) for name in ("a", "b")]
    step = plan(jobset, *jobs)
    expected = {"Completed": ("True", "AllJobsCompleted")} if completed else {}
    assert conditions_of(step.status) == expected
    assert step.status is not None
    assert step.status.get("terminalState") == ("Completed" if completed else None)


@pytest.mark.parametrize(
    ("operator", "completed"),
    [pytest.param("All", True, id="all of none"), pytest.param("Any", False, id="any of none")],
)
def test_success_policy_of_a_target_without_jobs(operator: str, completed: bool) -> None:
    """The policy is looked at when any Job has succeeded: all Jobs of a target without any have then."""
    policy = {"operator": operator, "targetReplicatedJobs": ["b"]}
    jobset = make_jobset(make_replicated_job("a"), make_replicated_job("b", replicas=0), successPolicy=policy)
    assert conditions_of(plan(jobset, make_job(jobset, "a", status=RUNNING)).status) == {}
    step = plan(jobset, make_job(jobset, "a", status=complete()))
    assert conditions_of(step.status) == ({"Completed": ("True", "AllJobsCompleted")} if completed else {})


def test_finished_jobset_deletes_what_still_runs() -> None:
    """Successful and failed Jobs stay for their logs."""
    status = {"restarts": 0, "conditions": [condition("Completed", "AllJobsCompleted")]}
    jobset = make_jobset(make_replicated_job(replicas=2), status=status)
    jobs = [make_job(jobset, status=RUNNING), make_job(jobset, index=1, status=complete())]
    step = plan(jobset, *jobs)
    assert names(step.delete) == ["js-node-0"]
    assert step.create == ()
    assert step.service is None


def test_failed_job_comes_before_a_successful_one() -> None:
    """One failure fails the JobSet even if the success policy were met."""
    jobset = make_jobset(make_replicated_job(replicas=2), successPolicy={"operator": "Any"})
    jobs = [make_job(jobset, status=failed()), make_job(jobset, index=1, status=complete())]
    assert conditions_of(plan(jobset, *jobs).status) == {"Failed": ("True", "FailedJobs")}


def test_restart_replaces_each_job_once_its_predecessor_is_gone() -> None:
    """Old Jobs are deleted first; a name that is still taken is not used."""
    old = make_jobset(make_replicated_job(replicas=2))
    jobs = [make_job(old, index=0, status=RUNNING), make_job(old, index=1, status=failed())]
    policy = {"maxRestarts": 3}
    restarted = make_jobset(make_replicated_job(replicas=2), status={"restarts": 1}, failurePolicy=policy)

    step = plan(restarted, *jobs)
    assert names(step.delete) == ["js-node-0", "js-node-1"]
    assert step.create == ()

    leaving = {**jobs[0], "metadata": {**jobs[0]["metadata"], "deletionTimestamp": ago(0)}}
    step = plan(restarted, leaving)
    assert step.delete == ()
    assert names(step.create) == ["js-node-1"]
    assert step.create[0]["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"] == "1"

    blocking = {**policy, "restartStrategy": "BlockingRecreate"}
    waiting = make_jobset(make_replicated_job(replicas=2), status={"restarts": 1}, failurePolicy=blocking)
    assert plan(waiting, leaving).create == ()


def test_restart_is_over_when_all_jobs_run() -> None:
    """RestartingJobSet turns false with reason JobsReady."""
    status = {"restarts": 1, "conditions": [condition("RestartingJobSet", "DefaultFailurePolicy")]}
    jobset = make_jobset(status=status, failurePolicy={"maxRestarts": 3})
    assert conditions_of(plan(jobset, make_job(jobset)).status)["RestartingJobSet"][0] == "True"
    step = plan(jobset, make_job(jobset, status=RUNNING))
    assert conditions_of(step.status) == {"RestartingJobSet": ("False", "JobsReady")}


@pytest.mark.parametrize(
    ("seconds_ago", "expired", "wait"),
    [pytest.param(20, False, 10.0, id="not yet"), pytest.param(30, True, None, id="due")],
)
def test_time_to_live(seconds_ago: float, expired: bool, wait: float | None) -> None:
    """A finished JobSet deletes itself after ttlSecondsAfterFinished."""
    status = {"restarts": 0, "conditions": [condition("Failed", "FailedJobs", seconds_ago=seconds_ago)]}
    step = plan(make_jobset(status=status, ttlSecondsAfterFinished=30))
    assert (step.expired, step.requeue_after) == (expired, wait)


def test_jobset_that_is_being_deleted_makes_nothing() -> None:
    """Garbage collection does the rest."""
    jobset = make_jobset()
    jobset["metadata"]["deletionTimestamp"] = ago(0)
    assert plan(jobset) == JobSetPlan()


def sizes(jobs: tuple[Object, ...]) -> dict[str, tuple[int, int]]:
    """Parallelism and completions of Jobs, by name."""
    return {name_of(job): (job["spec"]["parallelism"], job["spec"]["completions"]) for job in jobs}


def test_active_jobs_follow_a_change_of_size() -> None:
    """With the feature gate ElasticJobSet; Jobs that have ended stay as they were."""
    job_of = make_jobset(make_replicated_job("a", replicas=2), make_replicated_job("b"))
    jobs = [make_job(job_of, "a", 0, RUNNING), make_job(job_of, "a", 1, complete()), make_job(job_of, "b", 0, RUNNING)]
    jobset = make_jobset(make_replicated_job("a", replicas=2, pods=5), make_replicated_job("b"))

    step = plan_jobset(jobset, jobs, NOW, ELASTIC)
    assert sizes(step.resize) == {"js-a-0": (5, 5)}
    assert step.update == ()
    assert plan(jobset, *jobs).resize == ()


def test_size_that_the_jobset_leaves_open_is_that_of_the_job() -> None:
    """A template without parallelism does not take away the default that the Job has got."""
    job = make_job(make_jobset(), status=RUNNING)
    jobset = make_jobset()
    del jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["parallelism"]
    assert plan_jobset(jobset, [job], NOW, ELASTIC).resize == ()


def test_jobs_without_indexes_keep_their_size() -> None:
    """Their completions cannot be changed."""
    job = make_job(make_jobset(), status=RUNNING)
    job["spec"]["completionMode"] = "NonIndexed"
    assert plan_jobset(make_jobset(make_replicated_job(pods=3)), [job], NOW, ELASTIC).resize == ()


@pytest.mark.parametrize("suspend", [True, False])
def test_suspended_and_resumed_jobs_get_their_size_with_the_same_write(suspend: bool) -> None:
    """Two writes of one Job in a reconcile would conflict."""
    job = make_job(make_jobset(suspend=not suspend), status=RUNNING)
    jobset = make_jobset(make_replicated_job(pods=3), suspend=suspend)
    step = plan_jobset(jobset, [job], NOW, ELASTIC)
    assert step.resize == ()
    assert sizes(step.update) == {"js-node-0": (3, 3)}
    assert [entry["spec"]["suspend"] for entry in step.update] == [suspend]


def test_jobset_that_ends_resizes_nothing() -> None:
    """Its Jobs are about to go."""
    jobs = [make_job(make_jobset(make_replicated_job(replicas=2)), index=index) for index in (0, 1)]
    jobs[0]["status"] = failed()
    jobset = make_jobset(make_replicated_job(replicas=2, pods=3))
    assert plan_jobset(jobset, jobs, NOW, ELASTIC).resize == ()


@pytest.mark.parametrize(
    ("pods", "ready"),
    [pytest.param(2, 1, id="scaled down"), pytest.param(3, 1, id="kept"), pytest.param(4, 0, id="up")],
)
def test_resized_job_is_ready_when_all_of_its_pods_are(pods: int, ready: int) -> None:
    """The status counts by the size that the Job has."""
    jobset = make_jobset(make_replicated_job(pods=pods))
    status = plan(jobset, make_job(jobset, status={**RUNNING, "active": 3, "ready": 3})).status
    assert status is not None
    assert status["replicatedJobsStatus"][0]["ready"] == ready


def test_jobset_without_replicated_jobs_gets_no_status() -> None:
    """There is nothing to tell; its headless Service is made all the same."""
    jobset = make_jobset()
    jobset["spec"]["replicatedJobs"] = []
    step = plan(jobset)
    assert step.status is None
    assert step.service is not None
