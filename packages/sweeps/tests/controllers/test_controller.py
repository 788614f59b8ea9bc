"""What a sweep does, as its user sees it."""

from __future__ import annotations

from typing import Any

import pytest

from packages.sweeps.tests.controllers.cluster import Cluster, parameters
from packages.sweeps.tests.jobs import sweep_object
from trainer.api.optimization import ASSIGNMENT, PRUNED
from trainer.kube.objects import annotations_of
from trainer_sweeps.controllers.controller import AT_ONCE, JOINED


async def test_a_whole_sweep(any_cluster: Cluster) -> None:
    """Trials run side by side until all have ended, and the best one is the result."""
    cluster = any_cluster
    async with cluster.managed():
        await cluster.put(sweep_object(version=cluster.version))
        assert cluster.trials == ["demo-trial-1", "demo-trial-2"]
        assert cluster.conditions == {"Created": ("True", "TrainJobsCreated")}
        await cluster.end(2, "0.5")
        assert cluster.trials == ["demo-trial-1", "demo-trial-2", "demo-trial-3"]
        assert cluster.status["result"]["trainJobName"] == "demo-trial-2"
        await cluster.end(1, "0.75")
        await cluster.end(3, None, message="out of memory")
        assert cluster.conditions["Complete"] == ("True", "MaxTrialsReached")
        best = parameters(2)
        assert cluster.status["result"]["parameters"] == [
            {"name": "lr", "value": best["lr"]},
            {"name": "optimizer", "value": best["optimizer"]},
        ]
        cluster.client.requests.clear()
        await cluster.pass_time(3600)
        assert cluster.requests == []
        await cluster.start()
        assert cluster.requests == []


async def test_status(cluster: Cluster) -> None:
    """The status has the state, the counts, each trial that has ended, and how far the sweep is."""
    async with cluster.managed():
        await cluster.put(sweep_object(numTrials=4))
        assert cluster.status == {
            "state": "Running",
            "conditions": [
                {
                    "type": "Created",
                    "status": "True",
                    "reason": "TrainJobsCreated",
                    "message": "Trials are chosen and created",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                    "observedGeneration": 1,
                }
            ],
            "progressPercentage": 0,
            "trialCounts": {"running": 2, "succeeded": 0, "failed": 0, "pruned": 0},
            "startTime": "2026-01-01T00:00:00Z",
        }
        await cluster.pass_time(5)
        await cluster.end(1, "0.5")
        await cluster.end(2, None, message="out of memory")
        assert cluster.status["trialCounts"] == {"running": 2, "succeeded": 1, "failed": 1, "pruned": 0}
        assert cluster.status["progressPercentage"] == 50
        one, two = (parameters(number) for number in (1, 2))
        assert cluster.status["trials"] == [
            {
                "number": 1,
                "state": "Succeeded",
                "value": "0.5",
                "step": 1,
                "parameterValues": [one["lr"], one["optimizer"]],
            },
            {
                "number": 2,
                "state": "Failed",
                "parameterValues": [two["lr"], two["optimizer"]],
                "message": "out of memory",
            },
        ]
        await cluster.end(3, "0.25")
        await cluster.end(4, "0.75")
        assert cluster.status["state"] == "Complete"
        assert cluster.status["completionTime"] == "2026-01-01T00:00:05Z"
        assert cluster.status["result"]["value"] == "0.25"


async def test_events_and_metrics(cluster: Cluster) -> None:
    """The user reads of each trial when it is created and how it ends, and in the end what is best."""
    async with cluster.managed():
        await cluster.put(sweep_object(parallelTrials=1, pruneAlgorithm={"median": {}}))
        await cluster.end(1, "0.5")
        await cluster.report(2, (1, "11"))
        await cluster.end(3, None, message="out of memory")
        await cluster.pass_time(10)
        one, two, three = ("lr={lr}, optimizer={optimizer}".format(**parameters(number)) for number in (1, 2, 3))
        assert cluster.events == [
            ("Normal", "TrialCreated", f"Created trial 1: {one}"),
            ("Normal", "TrialSucceeded", f"Trial 1 has ended with loss 0.5: {one}"),
            ("Normal", "TrialCreated", f"Created trial 2: {two}"),
            ("Normal", "TrialPruned", "Trial 2 was stopped: more than 10"),
            ("Normal", "TrialCreated", f"Created trial 3: {three}"),
            ("Warning", "TrialFailed", "Trial 3 has failed: out of memory"),
            (
                "Normal",
                "MaxTrialsReached",
                f"All 3 trials have ended; the best loss is 0.5, of demo-trial-1 ({one})",
            ),
        ]
    assert cluster.counted("trainer_sweep_trials_started_total") == 3
    for state in ("Succeeded", "Failed", "Pruned"):
        assert cluster.counted("trainer_sweep_trials_total", state=state) == 1
    assert cluster.counted("trainer_sweep_suggestion_duration_seconds_count", algorithm="random") == 3


async def test_events_come_once_where_the_server_keeps_no_trials() -> None:
    """With the definition of Kubeflow Trainer (Go) the end of a trial is reported once as well."""
    cluster = Cluster("v1alpha1", keeps=False)
    async with cluster.managed():
        await cluster.put(sweep_object(version="v1alpha1"))
        for number, value in ((1, "0.5"), (2, "0.75"), (3, "0.6")):
            await cluster.end(number, value)
        await cluster.pass_time(10)
        ends = [message.split(" has")[0] for _, reason, message in cluster.events if reason == "TrialSucceeded"]
        assert ends == ["Trial 1", "Trial 2", "Trial 3"]


@pytest.mark.parametrize(
    ("spec", "ends", "condition", "state"),
    [
        pytest.param({}, [None, None, None], ("Failed", "NoTrialSucceeded"), "Failed", id="no-trial-succeeded"),
        pytest.param({}, [None, None, "1"], ("Complete", "MaxTrialsReached"), "Complete", id="one-succeeded"),
        pytest.param(
            {"maxFailedTrials": 0}, [None], ("Failed", "MaxFailedTrialsReached"), "Failed", id="first-failure-ends-it"
        ),
        pytest.param(
            {"maxFailedTrials": 1}, [None, "1", "1"], ("Complete", "MaxTrialsReached"), "Complete", id="failure-allowed"
        ),
        pytest.param(
            {"maxFailedTrials": 1}, [None, None], ("Failed", "MaxFailedTrialsReached"), "Failed", id="too-many-failures"
        ),
    ],
)
async def test_ends(
    cluster: Cluster, spec: dict[str, Any], ends: list[str | None], condition: tuple[str, str], state: str
) -> None:
    """A sweep ends when all its trials have, or too many have failed."""
    async with cluster.managed():
        await cluster.put(sweep_object(**spec))
        for number, value in enumerate(ends, start=1):
            await cluster.end(number, value)
        type_, reason = condition
        assert cluster.conditions[type_] == ("True", reason)
        assert cluster.status["state"] == state


async def test_a_sweep_that_fails_stops_its_trials(any_cluster: Cluster) -> None:
    """Trials that run when too many have failed are stopped, kept and counted; none is begun."""
    cluster = any_cluster
    async with cluster.managed():
        await cluster.put(sweep_object(version=cluster.version, numTrials=9, parallelTrials=3, maxFailedTrials=0))
        await cluster.end(1, "0.5")
        await cluster.end(2, None)
        assert cluster.conditions["Failed"] == ("True", "MaxFailedTrialsReached")
        assert cluster.suspended == ["demo-trial-3", "demo-trial-4"]
        assert annotations_of(cluster.trial(3))[PRUNED] == "the sweep has failed: see its condition"
        assert cluster.status["result"]["trainJobName"] == "demo-trial-1"
        if "trialCounts" in cluster.status:
            assert cluster.status["trialCounts"] == {"running": 0, "succeeded": 1, "failed": 1, "pruned": 2}
        assert len(cluster.trials) == 4


@pytest.mark.parametrize("reads_log", [pytest.param(True, id="log-is-read"), pytest.param(False, id="no-progress")])
async def test_the_end_waits_for_the_curve(cluster: Cluster, *, reads_log: bool) -> None:
    """The value of a trial is that of its whole curve, for which it waits a minute at the longest."""
    async with cluster.managed():
        await cluster.put(sweep_object(numTrials=1, parallelTrials=1))
        await cluster.report(1, (1, "0.5"))
        await cluster.conclude(1, "Complete")
        await cluster.pass_time(30)
        assert cluster.status["state"] == "Running"
        if reads_log:
            await cluster.report(1, (1, "0.5"), (2, "0.25"), is_final=True)
        else:
            await cluster.pass_time(31)
        assert cluster.status["result"]["value"] == ("0.25" if reads_log else "0.5")
        assert cluster.status["state"] == "Complete"


async def test_a_trial_that_waits_for_its_curve_is_left_alone(cluster: Cluster) -> None:
    """What has ended is neither stopped nor suspended with its sweep."""
    async with cluster.managed():
        await cluster.put(sweep_object(pruneAlgorithm={"asha": {}}))
        await cluster.conclude(1, "Complete")
        await cluster.report(1, (1, "11"))
        await cluster.change(suspend=True)
        assert cluster.suspended == ["demo-trial-2"]
        await cluster.pass_time(61)
        assert cluster.status["trials"][0]["value"] == "11"


async def test_a_trial_that_has_ended_when_its_sweep_fails_counts(cluster: Cluster) -> None:
    """It is not stopped, and is judged as others are."""
    async with cluster.managed():
        await cluster.put(sweep_object(maxFailedTrials=0))
        await cluster.report(1, (1, "0.5"))
        await cluster.conclude(1, "Complete")
        await cluster.end(2, None)
        assert cluster.status["state"] == "Failed"
        await cluster.pass_time(61)
        assert cluster.status["trialCounts"] == {"running": 0, "succeeded": 1, "failed": 1, "pruned": 0}
        assert cluster.status["result"]["value"] == "0.5"


async def test_what_a_user_has_done_to_a_trial_stops_no_sweep(cluster: Cluster) -> None:
    """Without the annotation of its parameters a trial still counts, and with steps beyond those of the status."""
    async with cluster.managed():
        await cluster.put(sweep_object(numTrials=1, parallelTrials=1))
        patch = {"metadata": {"annotations": {ASSIGNMENT: None}}}
        await cluster.user.patch(cluster.train_jobs, "demo-trial-1", patch, "default")
        await cluster.report(1, (2**40, "0.5"), is_final=True)
        await cluster.conclude(1, "Complete")
        assert cluster.status["result"] == {"trainJobName": "demo-trial-1", "value": "0.5"}
        assert cluster.status["trials"][0]["step"] == 2**31 - 1


async def test_pruning(any_cluster: Cluster) -> None:
    """A hopeless trial is suspended, marked and kept, also when it is resumed; another one takes its place."""
    cluster = any_cluster
    async with cluster.managed():
        await cluster.put(sweep_object(version=cluster.version, pruneAlgorithm={"asha": {}}))
        await cluster.report(1, (1, "9"))
        assert cluster.suspended == []
        await cluster.report(1, (1, "9"), (2, "11"))
        assert cluster.suspended == ["demo-trial-1"]
        assert annotations_of(cluster.trial(1))[PRUNED] == "more than 10"
        assert len(cluster.trials) == 3
        await cluster.suspend(1, suspend=False)
        await cluster.end(1, "0")
        await cluster.end(2, "0.5")
        await cluster.end(3, "0.75")
        assert cluster.status["result"]["trainJobName"] == "demo-trial-2"
        assert cluster.conditions["Complete"] == ("True", "MaxTrialsReached")
        if "trials" in cluster.status:
            first = cluster.status["trials"][0]
            assert (first["state"], first["value"], first["step"]) == ("Pruned", "11", 2)


async def test_a_trial_that_ends_while_it_is_judged_is_not_pruned(cluster: Cluster) -> None:
    """The end of a trial that nobody has seen when it was found hopeless counts."""
    async with cluster.managed():
        await cluster.put(sweep_object(pruneAlgorithm={"asha": {}}))
        cluster.client.faults.hold_watches(cluster.train_jobs)
        await cluster.report(1, (1, "11"))
        hold = cluster.client.faults.hold(verb="patch")
        cluster.client.faults.release_watches(1)
        await cluster.pass_time(JOINED)
        assert hold.waiting == 1
        await cluster.end(1, "12")
        hold.release()
        cluster.client.faults.release_watches()
        await cluster.pass_time(1)
        assert cluster.status["trials"][0]["state"] == "Succeeded"
        assert cluster.suspended == []


async def test_suspension(any_cluster: Cluster) -> None:
    """A suspended sweep suspends its trials and begins none; resumed, those that it has suspended go on."""
    cluster = any_cluster
    async with cluster.managed():
        await cluster.put(sweep_object(version=cluster.version, numTrials=6, parallelTrials=3))
        await cluster.suspend(3)
        assert len(cluster.trials) == 3
        await cluster.change(suspend=True)
        assert cluster.suspended == ["demo-trial-1", "demo-trial-2", "demo-trial-3"]
        assert cluster.conditions["Suspended"] == ("True", "Suspended")
        await cluster.end(1, "0.5")
        assert len(cluster.trials) == 3
        await cluster.suspend(2, suspend=False)
        assert "demo-trial-2" in cluster.suspended
        await cluster.start()
        await cluster.change(suspend=False)
        assert cluster.suspended == ["demo-trial-1", "demo-trial-3"], "the first has ended"
        assert len(cluster.trials) == 4
        assert cluster.conditions["Suspended"] == ("False", "Resumed")


async def test_a_sweep_that_is_suspended_while_it_begins(cluster: Cluster) -> None:
    """Of many trials at once few are begun after that."""
    async with cluster.managed():
        hold = cluster.client.faults.hold(verb="create", resource=cluster.train_jobs)
        await cluster.put(sweep_object(numTrials=100, parallelTrials=100))
        await cluster.change(suspend=True)
        hold.release()
        await cluster.pass_time(1)
        assert len(cluster.trials) == len(cluster.suspended) == AT_ONCE
        await cluster.change(suspend=False)
        await cluster.pass_time(1)
        assert len(cluster.trials) == 100
        assert cluster.suspended == []


async def test_a_sweep_that_begins_suspended(cluster: Cluster) -> None:
    """It has no trials until it is resumed."""
    async with cluster.managed():
        await cluster.put(sweep_object(suspend=True))
        assert cluster.trials == []
        assert cluster.status["state"] == "Suspended"
        await cluster.change(suspend=False)
        assert len(cluster.trials) == 2
        assert cluster.status["state"] == "Running"


async def test_time_to_live(any_cluster: Cluster) -> None:
    """A sweep that has ended is deleted once its time to live is over, and not before."""
    cluster = any_cluster
    async with cluster.managed():
        await cluster.put(
            sweep_object(version=cluster.version, numTrials=1, parallelTrials=1, ttlSecondsAfterFinished=60)
        )
        await cluster.pass_time(100)
        await cluster.end(1)
        await cluster.pass_time(59)
        assert cluster.status
        await cluster.start()
        await cluster.pass_time(1)
        assert cluster.user.objects(cluster.sweeps) == []
