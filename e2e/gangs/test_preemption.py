"""Gangs that make room for one of a higher priority."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from e2e.cluster import Cluster, train_job
from e2e.gangs.pod_groups import all_at_once, is_known_to_be_off, placed, pods_of, refusal, verdict
from e2e.gangs.slots import Slots
from e2e.gangs.trainings import AT_ONCE, FOR_LONG, gang_runtime, training
from e2e.installation import CONFIG
from e2e.waiting import until

pytestmark = pytest.mark.timeout(240)

GATE = "WorkloadAwarePreemption"

FIRST_TIME = """
import os, time

if os.environ["ATTEMPT"] == "0":
    time.sleep(600)
"""
"""Runs until it is ended, and ends well when it was started again."""


@pytest.fixture
def cluster(real_pods: Cluster) -> Iterator[Cluster]:
    """An empty namespace of the cluster."""
    said = refusal(real_pods, disruptionMode=all_at_once(real_pods))
    if said:
        pytest.skip(f"this cluster does not preempt groups: {said}")
    if is_known_to_be_off(real_pods, GATE):
        pytest.skip(f"this cluster does not preempt groups: its feature gate {GATE} is off")
    with real_pods.in_namespace() as own:
        yield own


@pytest.fixture
def priority(cluster: Cluster) -> Iterator[str]:
    """A PriorityClass above that of others."""
    name = f"e2e-high-{uuid.uuid4().hex[:8]}"
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": 1000}
    try:
        cluster.apply(high)
        yield name
    finally:
        cluster.kubectl("delete", "priorityclass", name, "--ignore-not-found")


def test_a_preempted_gang_starts_again(cluster: Cluster, slots: Slots, priority: str) -> None:
    """All of its nodes go for one of the other, which is a disruption and no failure; it goes on when that is gone."""
    slots.allow(3)
    cluster.apply(_shipped_in_a_gang(), gang_runtime("urgent", pod={"priorityClassName": priority}))
    victim = train_job("victim", FIRST_TIME, nodes=3, runtimeRef={"kind": "TrainingRuntime", "name": "shipped"})
    source = {"fieldRef": {"fieldPath": "metadata.annotations['jobset.sigs.k8s.io/restart-attempt']"}}
    victim["spec"]["trainer"] |= {"env": [{"name": "ATTEMPT", "valueFrom": source}], "resourcesPerNode": slots.per_node}
    cluster.apply(victim)
    cluster.wait_for_state("victim", "Running")
    former = {pod["metadata"]["name"] for pod in pods_of(cluster, "victim")}

    cluster.apply(training("urgent", slots, nodes=1, runtime="urgent", seconds=FOR_LONG))
    until(lambda: former <= preempted(cluster), lambda: f"{former} are preempted, not just {preempted(cluster)}")
    until(lambda: placed(cluster, "urgent") == 1 and not placed(cluster, "victim"), "the urgent one has the room")
    until(lambda: verdict(cluster, "urgent")[0] == "True", "its PodGroup says so")

    cluster.kubectl("delete", "trainjob", "urgent")
    job = cluster.complete("victim")
    assert job["status"]["restarts"] == {"disruptions": 1, "failures": 0, "maxRestarts": 0}
    assert cluster.restarts("victim") == (1, 0)
    assert "1 disruption" in cluster.trainer("get", "victim").stdout


def preempted(cluster: Cluster) -> set[str]:
    """The pods that a scheduler has taken away for others, by its events."""
    return {each["involvedObject"]["name"] for each in cluster.list("event") if each["reason"] == "Preempted"}


def _shipped_in_a_gang() -> dict[str, Any]:
    """The shipped runtime of PyTorch, which starts all nodes again after a disruption, in gangs that go as a whole."""
    runtime: dict[str, Any] = yaml.safe_load((CONFIG / "runtimes" / "torch_distributed.yaml").read_text())
    runtime |= {"kind": "TrainingRuntime", "metadata": {"name": "shipped"}}
    runtime["spec"]["podGroupPolicy"] = {"workload": {"disruptionMode": "PodGroup"}}
    (job,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    job["template"]["spec"]["template"]["spec"] |= AT_ONCE
    return runtime
