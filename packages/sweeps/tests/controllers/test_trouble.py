"""What happens to a sweep when something is missing, refused, taken or deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from packages.sweeps.tests.controllers.cluster import WORKLOADS, Cluster, parameters
from packages.sweeps.tests.jobs import sweep_object, trial_object
from trainer.api.kueue import QUEUE_LABEL
from trainer.api.optimization import ASSIGNMENT, PRUNED, SWEEP_LABEL
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.client import DeleteOptions, Propagation
from trainer.kube.errors import ForbiddenError, KubeError
from trainer.kube.objects import Object, controller_reference, uid_of
from trainer_kube_testing import statuses
from trainer_sweeps.search.history import PastTrial
from trainer_sweeps.search.suggestion import AlgorithmUnavailableError
from trainer_sweeps.trials.trial import PATIENCE


async def test_a_refused_trial_burns_no_number(cluster: Cluster) -> None:
    """What the API server answers is in the condition and an event; the trial is created once it is accepted."""
    async with cluster.managed():
        refusal = ForbiddenError(403, "exceeded quota: trainjobs")
        fault = cluster.client.faults.fail(refusal, verb="create", resource=cluster.train_jobs, times=None, skip=1)
        await cluster.put(sweep_object())
        assert cluster.trials == ["demo-trial-1"]
        assert cluster.status["state"] == "Blocked"
        assert cluster.conditions == {"Created": ("False", "TrainJobsCreationFailed")}
        message = f"trial 2 cannot be created: {refusal}"
        assert cluster.status["conditions"][0]["message"] == message
        attempts = fault.hits
        await cluster.pass_time(30)
        assert attempts < fault.hits < attempts + 15, "it is retried with backoff"
        assert [each for each in cluster.events if each[0] == "Warning"] == [
            ("Warning", "TrainJobsCreationFailed", message)
        ]
        writes = [each for each in cluster.requests if each.verb == "patch"]
        assert len(writes) == 1
        fault.end()
        await cluster.pass_time(60)
        assert cluster.trials == ["demo-trial-1", "demo-trial-2"]
        assert cluster.conditions == {"Created": ("True", "TrainJobsCreated")}
        assert cluster.status["state"] == "Running"


async def test_what_blocks_a_sweep_stays_in_its_condition(cluster: Cluster) -> None:
    """Neither the end of a trial nor a suspension says that trials are created again."""
    async with cluster.managed():
        refusal = ForbiddenError(403, "exceeded quota")
        cluster.client.faults.fail(refusal, verb="create", resource=cluster.train_jobs, times=None, skip=1)
        await cluster.put(sweep_object())
        before = cluster.status["conditions"]
        await cluster.pass_time(10)
        await cluster.change(suspend=True)
        await cluster.end(1)
        await cluster.change(suspend=False)
        await cluster.pass_time(10)
        assert cluster.conditions["Created"] == ("False", "TrainJobsCreationFailed")
        assert cluster.status["conditions"][0]["lastTransitionTime"] == before[0]["lastTransitionTime"]
        assert len([each for each in cluster.events if each[1] == "TrainJobsCreated"]) == 0


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(AlgorithmUnavailableError("install torch"), id="library-missing"),
        pytest.param(ValueError("install torch"), id="space-without-values"),
    ],
)
async def test_an_algorithm_that_is_missing_blocks(cluster: Cluster, error: Exception) -> None:
    """The condition says why no trial can be chosen; it is tried again slowly."""
    attempts: list[int] = []

    def fails(spec: Any, seed: int, history: Sequence[PastTrial], number: int) -> Mapping[str, str]:
        attempts.append(number)
        if len(attempts) < 3:
            raise error
        return parameters(number)

    cluster.suggest = fails
    async with cluster.managed():
        await cluster.put(sweep_object(parallelTrials=1))
        assert cluster.conditions == {"Created": ("False", "AlgorithmServiceCreationFailed")}
        assert cluster.status["conditions"][0]["message"] == "trial 1 cannot be chosen: install torch"
        assert cluster.status["state"] == "Blocked"
        await cluster.pass_time(599)
        assert attempts == [1]
        await cluster.pass_time(700)
        assert cluster.trials == ["demo-trial-1"]
        assert cluster.status["state"] == "Running"


@pytest.mark.parametrize(
    ("name", "spec", "message"),
    [
        pytest.param(
            "demo", {"objectives": [{"metric": "a"}, {"metric": "b"}]}, "only one objective can be optimized", id="two"
        ),
        pytest.param("x" * 60, {}, "must have at most 53 characters", id="long-name"),
        pytest.param("demo", {"numTrials": "3"}, "spec.numTrials", id="wrong-type"),
    ],
)
async def test_what_admission_would_have_refused(
    cluster: Cluster, name: str, spec: dict[str, Any], message: str
) -> None:
    """Where no webhook was asked, the condition says what is wrong, once."""
    async with cluster.managed():
        await cluster.put(sweep_object(name, **spec))
        assert cluster.conditions == {"Created": ("False", "AlgorithmServiceCreationFailed")}
        assert message in cluster.status["conditions"][0]["message"]
        assert cluster.status["state"] == "Blocked"
        await cluster.pass_time(60)
        assert len([each for each in cluster.requests if each.verb == "patch"]) == 1
        assert cluster.trials == []


async def test_a_name_that_is_taken(cluster: Cluster) -> None:
    """A TrainJob of somebody else is left alone; the sweep goes on once it is gone."""
    foreign = trial_object(number=2, sweep="")
    cluster.user.add(foreign)
    async with cluster.managed():
        await cluster.put(sweep_object(numTrials=2))
        assert cluster.trials == ["demo-trial-1", "demo-trial-2"]
        assert "ownerReferences" not in cluster.trial(2)["metadata"]
        assert cluster.conditions == {"Created": ("False", "TrainJobsCreationFailed")}
        message = cluster.status["conditions"][0]["message"]
        assert message == (
            "trial 2 cannot be created: TrainJob default/demo-trial-2 exists and does not belong to this "
            "OptimizationJob: delete it, or give the OptimizationJob another name"
        )
        assert cluster.status["trialCounts"]["running"] == 1
        await cluster.delete(2)
        await cluster.pass_time(60)
        assert "ownerReferences" in cluster.trial(2)["metadata"]
        assert cluster.conditions == {"Created": ("True", "TrainJobsCreated")}


async def test_a_name_that_is_about_to_be_free(cluster: Cluster) -> None:
    """The TrainJob of somebody else that is being deleted is waited for."""
    cluster.user.add(trial_object(sweep=""))
    foreground = DeleteOptions(propagation=Propagation.FOREGROUND)
    await cluster.user.delete(cluster.train_jobs, "demo-trial-1", "default", foreground)
    async with cluster.managed():
        await cluster.put(sweep_object())
        assert cluster.conditions == {}
        assert cluster.status["state"] == "Running"
        cluster.user.remove(cluster.train_jobs, "demo-trial-1", "default")
        await cluster.pass_time(60)
        assert cluster.trials == ["demo-trial-1", "demo-trial-2"]


async def test_a_sweep_that_is_made_again(any_cluster: Cluster) -> None:
    """Trials of a deleted sweep of that name are none of the new one's, which begins when they are gone."""
    cluster = any_cluster
    async with cluster.managed():
        await cluster.put(sweep_object(version=cluster.version))
        await cluster.end(1, "0.5")
        former = {name: uid_of(cluster.trial(int(name[-1]))) for name in cluster.trials}
        cluster.user.remove(cluster.sweeps, "demo", "default")
        await cluster.put(sweep_object(version=cluster.version))
        assert {name: uid_of(cluster.trial(int(name[-1]))) for name in cluster.trials} == former
        assert "Created" not in cluster.conditions
        assert "result" not in cluster.status
        for name in former:
            cluster.user.remove(cluster.train_jobs, name, "default")
        await cluster.pass_time(1)
        assert cluster.trials == ["demo-trial-1", "demo-trial-2"]
        assert cluster.conditions == {"Created": ("True", "TrainJobsCreated")}


async def test_a_trial_that_is_deleted_before_its_end_runs_again(any_cluster: Cluster) -> None:
    """It counts as running until it is gone; then another one has its number."""
    cluster = any_cluster
    async with cluster.managed():
        await cluster.put(sweep_object(version=cluster.version, numTrials=4))
        first = uid_of(cluster.trial(1))
        foreground = DeleteOptions(propagation=Propagation.FOREGROUND)
        await cluster.user.delete(cluster.train_jobs, "demo-trial-1", "default", foreground)
        await cluster.pass_time(1)
        assert cluster.trials == ["demo-trial-1", "demo-trial-2"]
        assert uid_of(cluster.trial(1)) == first
        cluster.user.remove(cluster.train_jobs, "demo-trial-1", "default")
        await cluster.pass_time(1)
        assert cluster.trials == ["demo-trial-1", "demo-trial-2"]
        assert uid_of(cluster.trial(1)) != first


async def test_a_trial_that_is_deleted_after_its_end_counts(cluster: Cluster) -> None:
    """What has ended is in the status: neither deletion nor a restart has it run again, and it may be the best."""
    async with cluster.managed():
        await cluster.put(sweep_object())
        await cluster.end(1, "0.25")
        await cluster.delete(1)
        await cluster.start()
        assert cluster.trials == ["demo-trial-2", "demo-trial-3"]
        await cluster.end(2, "0.5")
        await cluster.end(3, "0.5")
        assert cluster.status["result"]["trainJobName"] == "demo-trial-1"
        assert cluster.status["state"] == "Complete"


async def test_a_trial_that_has_lost_its_label_counts(cluster: Cluster) -> None:
    """Its owner and its name are enough: it ends like any other, and costs no more requests than another one."""
    async with cluster.managed():
        await cluster.put(sweep_object())
        patch = {"metadata": {"labels": {SWEEP_LABEL: None}}}
        await cluster.user.patch(cluster.train_jobs, "demo-trial-1", patch, "default")
        await cluster.end(1, "0.25")
        assert cluster.trials == ["demo-trial-1", "demo-trial-2", "demo-trial-3"]
        assert cluster.status["trials"][0]["value"] == "0.25"


async def test_a_trial_whose_parameters_were_edited_is_recorded(cluster: Cluster) -> None:
    """What no parameter can have, and the status has no room for, is not in it."""
    async with cluster.managed():
        await cluster.put(sweep_object())
        values = [{"name": "lr", "value": "0" * 65}, {"name": "optimizer", "value": "adam"}]
        annotations = {ASSIGNMENT: msgspec.json.encode(values).decode()}
        await cluster.user.patch(
            cluster.train_jobs, "demo-trial-1", {"metadata": {"annotations": annotations}}, "default"
        )
        await cluster.end(1)
        lr, optimizer = cluster.status["trials"][0]["parameterValues"]
        assert len(lr) <= 64
        assert optimizer == "adam"


async def test_a_number_beyond_the_last_one_is_no_trial(cluster: Cluster) -> None:
    """A TrainJob that somebody makes with such a name takes the place of none, and does not end the sweep."""
    async with cluster.managed():
        await cluster.put(sweep_object())
        stranger = trial_object(number=101, end="Failed")
        stranger["metadata"]["ownerReferences"] = [controller_reference(cluster.sweep)]
        stranger["metadata"]["labels"][SWEEP_LABEL] = "demo"
        await cluster.put(stranger)
        await cluster.end(1)
        assert cluster.status["trialCounts"] == {"running": 2, "succeeded": 1, "failed": 0, "pruned": 0}


async def test_a_trial_that_is_marked_by_hand_is_stopped(any_cluster: Cluster) -> None:
    """Its place is free for another one, so it does not go on beside it."""
    cluster = any_cluster
    async with cluster.managed():
        await cluster.put(sweep_object(version=cluster.version))
        patch = {"metadata": {"annotations": {PRUNED: "no good"}}}
        await cluster.user.patch(cluster.train_jobs, "demo-trial-1", patch, "default")
        await cluster.pass_time(1)
        assert cluster.suspended == ["demo-trial-1"]
        assert len(cluster.trials) == 3


async def test_the_end_of_a_trial_is_recorded_first(cluster: Cluster) -> None:
    """While the status cannot be written, nothing follows from the end of a trial."""
    async with cluster.managed():
        await cluster.put(sweep_object())
        fault = cluster.client.faults.fail(statuses.unavailable(), verb="patch", resource=cluster.sweeps, times=None)
        await cluster.end(1)
        assert len(cluster.trials) == 2
        fault.end()
        await cluster.pass_time(30)
        assert len(cluster.trials) == 3


async def test_a_trial_that_ends_while_there_is_no_manager(cluster: Cluster) -> None:
    """The next manager has the same time to read the end of its log as one that has seen it end."""
    async with cluster.managed():
        await cluster.put(sweep_object())
        await cluster.report(1, (1, "5"))
        cluster.client.faults.hold_watches(cluster.train_jobs)
        await cluster.conclude(1, "Complete")
        await cluster.pass_time(600)
        await cluster.start()
        await cluster.pass_time(PATIENCE.total_seconds() - 1)
        assert "trials" not in cluster.status
        await cluster.report(1, (1, "5"), (2, "0.5"), is_final=True)
        assert cluster.status["trials"][0]["value"] == "0.5"


async def test_a_cache_that_lags_behind_forgets_nothing(cluster: Cluster) -> None:
    """A new process whose caches know neither the trials nor the status makes nothing twice and nothing too many."""
    async with cluster.managed():
        await cluster.put(sweep_object(numTrials=6, parallelTrials=3))
        await cluster.end(1, "0.25")
        await cluster.delete(1)
        await cluster.change(parallelTrials=2)
        await cluster.delete(2)
        assert cluster.trials == ["demo-trial-3", "demo-trial-4"]
        status = cluster.status
        await cluster.start()
        informers = {each.resource: each for each in cluster.managers[-1].cache.informers}
        await informers[TRAIN_JOBS].replace([], "1")
        stale = {name: value for name, value in cluster.sweep.items() if name != "status"}
        stale["metadata"] = stale["metadata"] | {"generation": 1}
        await informers[cluster.sweeps].replace([CachedObject.of(stale)], "1")
        await cluster.pass_time(1)
        assert [each.verb for each in cluster.requests] == ["get", "list"]
        assert cluster.trials == ["demo-trial-3", "demo-trial-4"]
        assert cluster.status == status


async def test_another_sweep_of_the_name_gets_no_status_of_the_first(cluster: Cluster) -> None:
    """A status is for the object that it was made of."""
    async with cluster.managed():
        hold = cluster.client.faults.hold(verb="patch", resource=cluster.sweeps)
        await cluster.put(sweep_object())
        assert hold.waiting == 1
        cluster.user.remove(cluster.sweeps, "demo", "default")
        await cluster.put(sweep_object(suspend=True))
        hold.release()
        await cluster.pass_time(5)
        assert cluster.status["state"] == "Suspended"
        assert "startTime" not in cluster.status


@pytest.mark.parametrize(
    ("error", "level"),
    [
        pytest.param(statuses.no_such_resource(), "info", id="not-served"),
        pytest.param(ForbiddenError(403, "no rights"), "warning", id="no-rights"),
        pytest.param(statuses.unavailable(), "warning", id="no-answer"),
    ],
)
async def test_the_kind_comes_later(cluster: Cluster, error: KubeError, level: str) -> None:
    """The manager starts without it and says so once; sweeps run from when it can be read."""
    fault = cluster.client.faults.fail(error, resource=cluster.sweeps, times=None)
    cluster.user.add(sweep_object())
    with capture_logs() as logs:
        async with cluster.managed():
            assert cluster.managers[-1].is_ready
            await cluster.pass_time(200)
            (line,) = [each for each in logs if "OptimizationJobs" in each["event"]]
            assert line["log_level"] == level
            assert line["remedy"]
            assert cluster.trials == []
            fault.end()
            await cluster.pass_time(31)
            assert cluster.trials == ["demo-trial-1", "demo-trial-2"]


@pytest.mark.parametrize("action", ["prune", "hold"])
async def test_the_workload_is_deactivated(any_cluster: Cluster, action: str) -> None:
    """Kueue would start again what it has admitted: the Workload of a trial is deactivated, and activated again."""
    cluster = any_cluster
    labels = {"labels": {QUEUE_LABEL: "gpus"}}
    async with cluster.managed():
        await cluster.put(sweep_object(version=cluster.version, metadata=labels, pruneAlgorithm={"asha": {}}))
        await cluster.put(workload(uid_of(cluster.trial(1))))
        cluster.client.faults.fail(statuses.unavailable(), resource=WORKLOADS)
        if action == "prune":
            await cluster.report(1, (1, "11"))
        else:
            await cluster.change(suspend=True)
        await cluster.pass_time(1)
        assert cluster.user.objects(WORKLOADS)[0]["spec"]["active"] is False
        assert "demo-trial-1" in cluster.suspended
        await cluster.change(suspend=False)
        assert cluster.user.objects(WORKLOADS)[0]["spec"]["active"] is (action == "hold")
        if action == "hold" and cluster.version == "v1alpha1":
            assert "demo-trial-1" in cluster.suspended, "Kueue resumes it when it admits it"


async def test_a_trial_that_waits_in_its_queue_is_not_resumed(cluster: Cluster) -> None:
    """Kueue keeps a trial suspended until it admits it, which the sweep leaves to it."""
    async with cluster.managed():
        await cluster.put(sweep_object(metadata={"labels": {QUEUE_LABEL: "gpus"}}))
        await cluster.suspend(1)
        cluster.client.requests.clear()
        await cluster.pass_time(60)
        assert cluster.suspended == ["demo-trial-1"]
        assert cluster.requests == []


async def test_kueue_that_may_not_be_told(cluster: Cluster) -> None:
    """Without rights on Workloads the trials are suspended and resumed all the same."""
    async with cluster.managed():
        cluster.client.faults.fail(ForbiddenError(403, "no rights"), resource=WORKLOADS, times=None)
        await cluster.put(sweep_object(metadata={"labels": {QUEUE_LABEL: "gpus"}}))
        await cluster.change(suspend=True)
        assert cluster.suspended == ["demo-trial-1", "demo-trial-2"]
        await cluster.change(suspend=False)
        assert cluster.suspended == []


def workload(uid: str) -> Object:
    """The admitted Workload of a trial."""
    return {
        "apiVersion": WORKLOADS.api_version,
        "kind": "Workload",
        "metadata": {"name": "trainjob-demo", "namespace": "default", "labels": {"kueue.x-k8s.io/job-uid": uid}},
        "spec": {"queueName": "gpus", "active": True},
    }
