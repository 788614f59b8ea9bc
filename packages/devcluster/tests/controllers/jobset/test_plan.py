from __future__ import annotations

from packages.devcluster.tests.controllers.jobset.samples import (
    NOW,
    RUNNING,
    ago,
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


def sizes(jobs: tuple[Object, ...]) -> dict[str, tuple[int, int]]:
    """Parallelism and completions of Jobs, by name."""
    return {name_of(job): (job["spec"]["parallelism"], job["spec"]["completions"]) for job in jobs}


def test_jobs_without_indexes_keep_their_size() -> None:
    """Their completions cannot be changed."""
    job = make_job(make_jobset(), status=RUNNING)
    job["spec"]["completionMode"] = "NonIndexed"
    assert plan_jobset(make_jobset(make_replicated_job(pods=3)), [job], NOW, ELASTIC).resize == ()
