"""Disrupted pods are counted once, by why, and by the leader alone."""

from __future__ import annotations

from itertools import pairwise

import pytest
from prometheus_client import CollectorRegistry

from tests.framework.samples import pod_metadata
from trainer.controllers.metrics.disruptions import DisruptedPods, DisruptionSeries
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.objects import Object

SECOND = "2026-01-01T00:00:01Z"


def pod(phase: str = "Running", *, target: str = "", code: int | None = None, deleted: bool = False) -> CachedObject:
    """A pod of a JobSet, perhaps the target of a disruption, or ended."""
    metadata = pod_metadata("demo-node-0-0-x")
    if deleted:
        metadata |= {"deletionTimestamp": SECOND, "deletionGracePeriodSeconds": 0}
    status: Object = {"phase": phase}
    if target:
        reason = {"type": "DisruptionTarget", "status": "True", "reason": target, "lastTransitionTime": SECOND}
        status["conditions"] = [reason]
    if code is not None:
        state = {"terminated": {"exitCode": code, "finishedAt": "2026-01-01T00:00:02Z"}}
        status["containerStatuses"] = [{"name": "trainer", "state": state}]
    spec = {"containers": [{"name": "trainer"}]}
    return CachedObject.of({"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec, "status": status})


def counted(
    *versions: CachedObject, initial: bool = False, is_leader: bool = True, train_job: str = "demo"
) -> dict[str, float]:
    """The counts by reason once a pod has gone through these versions."""
    registry = CollectorRegistry()
    handler = DisruptedPods(DisruptionSeries(registry), lambda: is_leader, lambda key: key == ("default", train_job))
    handler.on_add(versions[0], initial=initial)
    for old, new in pairwise(versions):
        handler.on_update(old, new)
    handler.on_delete(versions[-1], stale=False)
    samples = [each for metric in registry.collect() for each in metric.samples if each.name.endswith("_total")]
    assert {sample.labels["namespace"] for sample in samples} <= {"default"}
    return {sample.labels["reason"]: sample.value for sample in samples}


EVICTION = "EvictionByEvictionAPI"


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        pytest.param(
            [
                pod(),
                pod(target=EVICTION),
                pod(target=EVICTION, deleted=True),
                pod("Failed", target=EVICTION, code=143, deleted=True),
            ],
            {EVICTION: 1},
            id="evicted",
        ),
        pytest.param([pod(), pod("Failed", code=75)], {"SavedAndEnded": 1}, id="saved and ended"),
        pytest.param([pod(), pod("Failed", code=1)], {}, id="failed"),
        pytest.param([pod(), pod(deleted=True)], {}, id="deleted by nobody knows whom"),
        pytest.param([pod(), pod("Failed", target="SomethingNew", code=1)], {"Other": 1}, id="an unknown word"),
        pytest.param([pod("Failed", target=EVICTION, code=1)], {EVICTION: 1}, id="seen late"),
        pytest.param([pod("Succeeded"), pod("Succeeded", target=EVICTION)], {}, id="evicted after its end"),
        pytest.param([pod("Failed", code=1), pod("Failed", target=EVICTION, code=1)], {}, id="evicted after a failure"),
    ],
)
def test_counts(versions: list[CachedObject], expected: dict[str, float]) -> None:
    """A pod counts when its disruption shows first, under one of few words."""
    assert counted(*versions) == expected


def test_who_counts() -> None:
    """The leader counts what happens to pods of TrainJobs while it leads."""
    evicted = pod(target=EVICTION, deleted=True)
    assert counted(evicted, initial=True) == {}
    assert counted(pod(), evicted, is_leader=False) == {}
    assert counted(pod(), evicted, train_job="another") == {}
