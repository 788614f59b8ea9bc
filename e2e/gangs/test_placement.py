"""Where and when gangs are placed. Their pods are fake on this machine: nothing here depends on what they do."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from e2e.cluster import Cluster
from e2e.gang_schedulers import COSCHEDULING, installed
from e2e.gangs.pod_groups import (
    POD_GROUPS,
    WORKLOADS,
    group_of,
    job_of,
    min_count,
    placed,
    pod_group,
    pods_of,
    takes_room,
    verdict,
)
from e2e.gangs.slots import Slots
from e2e.gangs.trainings import FOR_LONG, gang_runtime, training
from e2e.waiting import until

pytestmark = pytest.mark.timeout(300)

WAITS = 3
"""Exit status of `trainer explain` for a TrainJob that waits."""
ROUNDS = 10
"""Of each kind."""


@pytest.fixture
def cluster(fake_pods: Cluster) -> Iterator[Cluster]:
    """An empty namespace of the cluster."""
    with fake_pods.in_namespace() as own:
        yield own


def test_a_gang_that_does_not_fit_holds_nothing(cluster: Cluster, slots: Slots) -> None:
    """None of its pods is placed, others get the room, and it runs once the node has grown."""
    slots.allow(2)
    cluster.apply(gang_runtime(), gang_runtime("single", policy={}), training("demo", slots, nodes=3))
    until(lambda: verdict(cluster, "demo") == ("False", "Unschedulable"), "its PodGroup tells that it does not fit")
    assert {group_of(pod) for pod in pods_of(cluster, "demo")} == {_name(cluster, "demo")}
    assert min_count(pod_group(cluster, "demo")) == 3
    assert placed(cluster, "demo") == 0
    explained = cluster.trainer("explain", "demo")
    assert explained.returncode == WAITS, explained.stderr
    assert "3 pods" in explained.stdout

    cluster.apply(training("other", slots, nodes=2, runtime="single"))
    cluster.complete("other")
    assert placed(cluster, "demo") == 0

    slots.allow(3)
    cluster.complete("demo")
    until(lambda: not cluster.list(POD_GROUPS) and not cluster.list(WORKLOADS), "its PodGroup and Workload are gone")


@pytest.mark.parametrize("wait_first", [False, True], ids=["at-once", "both-wait"])
def test_two_gangs_never_block_each_other(cluster: Cluster, slots: Slots, wait_first: bool) -> None:
    """Of two gangs with room for one and a half, one is placed whole and the other waits whole, again and again.

    They come when the room is there, or both wait already when it comes.
    """
    cluster.apply(gang_runtime(seconds=0.2))
    for turn in range(ROUNDS):
        _let_two_compete(cluster, slots, [f"{name}-{turn}" for name in "ab"], wait_first=wait_first)


def _let_two_compete(cluster: Cluster, slots: Slots, names: list[str], *, wait_first: bool) -> None:
    slots.allow(0 if wait_first else 4)
    cluster.apply(*(training(name, slots, nodes=3, seconds=0.2) for name in names))
    if wait_first:
        until(lambda: len(cluster.list("pod")) == 3 * len(names), "both wait")
        slots.allow(4)

    def are_complete() -> bool:
        holders = {job_of(pod) for pod in cluster.list("pod") if takes_room(pod)}
        assert len(holders) < 2, f"{holders} hold room at the same time"
        return all((job.get("status") or {}).get("state") == "Complete" for job in cluster.list("trainjob"))

    until(are_complete, lambda: cluster.kubectl("describe", f"pod,{POD_GROUPS}").stdout)
    cluster.kubectl("delete", "trainjob", *names)
    until(lambda: not cluster.list("pod"), "their pods are gone")


def test_an_elastic_training_starts_with_its_least(cluster: Cluster, slots: Slots) -> None:
    """It waits for room for `minNodes`, runs with as many as fit, and another size does not touch its PodGroup."""
    runtime = gang_runtime("elastic", seconds=FOR_LONG)
    runtime["spec"]["mlPolicy"] = {"torch": {"elasticPolicy": {"minNodes": 2, "maxNodes": 4}}}
    slots.allow(1)
    cluster.apply(runtime, training("demo", slots, nodes=3, runtime="elastic", seconds=FOR_LONG))
    until(lambda: verdict(cluster, "demo") == ("False", "Unschedulable"), "it does not fit")
    assert (placed(cluster, "demo"), min_count(pod_group(cluster, "demo"))) == (0, 2)

    slots.allow(2)
    until(lambda: placed(cluster, "demo") == 2, "its least number of nodes is placed")
    slots.allow(4)
    until(lambda: placed(cluster, "demo") == 3, "the third node joins them")
    if cluster.is_local:  # JobSet leaves its feature gate ElasticJobSet off
        before = _uid(cluster, "demo")
        cluster.kubectl("scale", "trainjob/demo", "--replicas=4")
        until(lambda: placed(cluster, "demo") == 4, "a fourth node joins them")
        assert _uid(cluster, "demo") == before


def test_resumed_with_another_number_of_nodes(cluster: Cluster, slots: Slots) -> None:
    """A training that was suspended gets a PodGroup for the nodes that it is resumed with, fewer or more."""
    slots.allow(2)
    cluster.apply(gang_runtime(seconds=FOR_LONG), training("demo", slots, nodes=3, seconds=FOR_LONG))
    until(lambda: verdict(cluster, "demo") == ("False", "Unschedulable"), "three nodes do not fit")
    _resize(cluster, "demo", 2)
    until(lambda: placed(cluster, "demo") == 2, "two nodes are placed")
    assert min_count(pod_group(cluster, "demo")) == 2

    _resize(cluster, "demo", 3)
    until(lambda: min_count(pod_group(cluster, "demo")) == 3, "its PodGroup is for three")
    until(lambda: verdict(cluster, "demo") == ("False", "Unschedulable"), "three nodes do not fit")
    assert placed(cluster, "demo") == 0
    slots.allow(3)
    until(lambda: placed(cluster, "demo") == 3, "three nodes are placed")


def test_a_runtime_that_moves_from_coscheduling(cluster: Cluster, slots: Slots) -> None:
    """A training that runs keeps its PodGroup of coscheduling; new ones, and it on request, get one of Kubernetes."""
    slots.allow(4)
    with installed(cluster, COSCHEDULING):
        cluster.apply(gang_runtime(seconds=FOR_LONG, policy={"coscheduling": {}}))
        old = json.dumps(training("old", slots, nodes=2, seconds=FOR_LONG))
        until(
            lambda: cluster.kubectl("apply", "-f", "-", stdin=old, check=False).returncode == 0,
            "the manager has noticed the kind",
        )
        until(lambda: placed(cluster, "old") == 2, "it runs")
        former = {pod["metadata"]["uid"] for pod in pods_of(cluster, "old")}

        cluster.kubectl("delete", "trainingruntime", "gang")
        cluster.apply(gang_runtime(seconds=FOR_LONG), training("new", slots, nodes=2, seconds=FOR_LONG))
        until(lambda: placed(cluster, "new") == 2, "the new one runs")
        assert {group_of(pod) for pod in pods_of(cluster, "new")} == {_name(cluster, "new")}
        assert {pod["metadata"]["uid"] for pod in pods_of(cluster, "old")} == former
        assert cluster.get(COSCHEDULING, "old") is not None
        assert pod_group(cluster, "old") is None

        cluster.suspend("old")
        until(lambda: not pods_of(cluster, "old"), "its pods are gone")
        cluster.kubectl("delete", "configmap", "old-runtime-snapshot")
        cluster.suspend("old", False)
        until(lambda: placed(cluster, "old") == 2, "it runs again")
        assert {group_of(pod) for pod in pods_of(cluster, "old")} == {_name(cluster, "old")}
        until(lambda: cluster.get(COSCHEDULING, "old") is None, "its former PodGroup is gone")


def _name(cluster: Cluster, job: str) -> str:
    group = pod_group(cluster, job)
    return group["metadata"]["name"] if group else ""


def _uid(cluster: Cluster, job: str) -> str:
    group = pod_group(cluster, job)
    return group["metadata"]["uid"] if group else ""


def _resize(cluster: Cluster, name: str, nodes: int) -> None:
    cluster.suspend(name)
    until(lambda: not pods_of(cluster, name), "its pods are gone")
    change = json.dumps({"spec": {"suspend": False, "trainer": {"numNodes": nodes}}})
    cluster.kubectl("patch", "trainjob", name, "--type=merge", "-p", change)
