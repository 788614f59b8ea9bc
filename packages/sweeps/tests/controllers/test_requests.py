"""What a sweep costs the API server and the manager."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from packages.sweeps.tests.controllers.cluster import Cluster
from packages.sweeps.tests.jobs import curve_text, sweep_object
from trainer.api.metric_curve import CURVE
from trainer.kube.objects import annotations_of

RECONCILES = "controller_runtime_reconcile_total"


def reconciles(cluster: Cluster) -> float:
    """How often the controller has looked at a sweep."""
    results = ("success", "requeue_after", "error", "requeue")
    return sum(cluster.counted(RECONCILES, controller="optimizationjob", result=each) for each in results)


async def test_the_requests_of_a_sweep(cluster: Cluster) -> None:
    """One trial costs its creation, two looks at what there is, and two writes of the status."""
    async with cluster.managed():
        cluster.client.requests.clear()
        await cluster.put(sweep_object(numTrials=10, parallelTrials=1))
        for number in range(1, 11):
            await cluster.end(number)
        asked = Counter(f"{each.verb} {each.resource.plural}" for each in cluster.requests)
        assert asked == {
            "get optimizationjobs": 11,
            "list trainjobs": 11,
            "create trainjobs": 10,
            "patch optimizationjobs": 20,
        }


async def test_points_of_many_curves_are_one_look(cluster: Cluster) -> None:
    """What all trials of a sweep report within two seconds is looked at once."""
    async with cluster.managed():
        await cluster.put(sweep_object(numTrials=9, parallelTrials=9, pruneAlgorithm={"median": {}}))
        before = reconciles(cluster)
        for number in range(1, 10):
            trial = cluster.trial(number)
            annotations = annotations_of(trial) | {CURVE: curve_text((1, "1"))}
            await cluster.put(trial | {"metadata": trial["metadata"] | {"annotations": annotations}})
        await cluster.pass_time(60)
        assert reconciles(cluster) == before + 1


@pytest.mark.parametrize("prunes", [pytest.param(True, id="prunes"), pytest.param(False, id="prunes-not")])
async def test_progress_is_looked_at_where_it_counts(cluster: Cluster, *, prunes: bool) -> None:
    """Another point of a curve has a sweep looked at that prunes, and no other; the last one has any."""
    async with cluster.managed():
        algorithm: dict[str, Any] = {"pruneAlgorithm": {"median": {}}} if prunes else {}
        await cluster.put(sweep_object(**algorithm))
        cluster.client.requests.clear()
        before = reconciles(cluster)
        for step in range(1, 6):
            trial = cluster.trial(1)
            trial["status"] = {"trainerStatus": {"currentStep": step, "lastUpdatedTime": "2026-01-01T00:00:00Z"}}
            await cluster.put(trial)
        assert reconciles(cluster) == before
        for step in range(1, 6):
            await cluster.report(1, *((each, "1") for each in range(1, step + 1)))
        assert reconciles(cluster) == before + (5 if prunes else 0)
        assert cluster.requests == []
        await cluster.report(1, (1, "1"), is_final=True)
        assert reconciles(cluster) == before + (6 if prunes else 1)


async def test_sweeps_at_rest_cost_nothing(cluster: Cluster) -> None:
    """Two hundred sweeps with running trials are looked at once, by each process."""
    names = [f"demo-{number}" for number in range(200)]
    async with cluster.managed():
        await cluster.put(*(sweep_object(name, numTrials=1, parallelTrials=1) for name in names))
        assert len(cluster.trials) == 200
        await cluster.pass_time(10)
        before = reconciles(cluster)
        cluster.client.requests.clear()
        await cluster.pass_time(3600)
        assert (reconciles(cluster), cluster.requests) == (before, [])
        await cluster.start()
        assert cluster.requests == []
        assert reconciles(cluster) == before + 200


async def test_the_end_of_many_trials_is_reported(cluster: Cluster) -> None:
    """Events are bounded; those about trials leave room for that about the sweep."""
    async with cluster.managed():
        await cluster.put(sweep_object(numTrials=40, parallelTrials=10))
        for number in range(1, 41):
            await cluster.end(number)
        await cluster.pass_time(1)
        assert len(cluster.events) < 40
        assert [reason for _, reason, _ in cluster.events if not reason.startswith("Trial")] == ["MaxTrialsReached"]
