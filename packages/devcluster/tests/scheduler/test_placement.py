"""One round of scheduling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from packages.devcluster.tests.scheduler.objects import candidate, make_node
from trainer_devcluster.scheduler.candidate import Candidate, Gang
from trainer_devcluster.scheduler.node_fit import Room
from trainer_devcluster.scheduler.placement import GangState, Placement

DEVICES = "no new claims to deallocate"
NO_VICTIMS = f"{DEVICES}, preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
NOT_HELPFUL = f"{DEVICES}, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
GPU = "nvidia.com/gpu"


def place(
    waiting: Sequence[Candidate], placed: Sequence[Candidate] = (), state: GangState | None = None
) -> tuple[list[str], dict[str, str]]:
    """Names of the pods that are bound, in order, and the reason of the others."""
    placement = Placement(Room(make_node(), placed), lambda _: state or GangState(None))
    placement.place(waiting)
    return [each.key.name for each in placement.bound], {each.key.name: text for each, text in placement.held.items()}


def test_turns() -> None:
    """The higher priority comes first, then the older pod, whatever the order in which they are given."""
    young = candidate("young", {GPU: 1}, created="2026-01-01T00:00:02Z")
    old = candidate("old", {GPU: 1}, created="2026-01-01T00:00:01Z")
    important = candidate("important", {GPU: 1}, created="2026-01-01T00:00:03Z", priority=10)
    bound, held = place([young, old, important])
    assert bound == ["important", "old"]
    assert set(held) == {"young"}


def test_smaller_ones_pass() -> None:
    """A pod that does not fit does not keep others from fitting."""
    large = candidate("large", {"cpu": "8"}, created="2026-01-01T00:00:00Z")
    small = candidate("small", {"cpu": "1"}, created="2026-01-01T00:00:01Z")
    assert place([large, small])[0] == ["small"]


@pytest.mark.parametrize(
    ("pod", "others", "text"),
    [
        pytest.param(
            {"requests": {GPU: 1}},
            [{"requests": {GPU: 2}}],
            f"0/1 nodes are available: 1 Insufficient {GPU}. {NO_VICTIMS}",
            id="taken",
        ),
        pytest.param(
            {"requests": {"cpu": "16"}}, [], f"0/1 nodes are available: 1 Insufficient cpu. {NOT_HELPFUL}", id="never"
        ),
        pytest.param(
            {"nodeSelector": {"a": "b"}},
            [],
            f"0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. {NOT_HELPFUL}",
            id="selector",
        ),
        pytest.param(
            {"requests": {GPU: 1}, "preemptionPolicy": "Never"},
            [{"requests": {GPU: 2}}],
            f"0/1 nodes are available: 1 Insufficient {GPU}. {DEVICES}, "
            "preemption: not eligible due to preemptionPolicy=Never.",
            id="never-preempts",
        ),
        pytest.param(
            {"requests": {GPU: 1}, "priority": 5},
            [{"requests": {GPU: 2}}],
            f"0/1 nodes are available: 1 Insufficient {GPU}. {DEVICES}, "
            "preemption: the dev cluster does not evict pods of lower priority.",
            id="would-preempt",
        ),
    ],
)
def test_messages(pod: dict[str, Any], others: list[dict[str, Any]], text: str) -> None:
    """They are those of kube-scheduler, which also says why it does not make room."""
    placed = [candidate(f"other-{index}", **each) for index, each in enumerate(others)]
    assert place([candidate("pod", **pod)], placed)[1] == {"pod": text}


def members(count: int, scheduler: str = "coscheduling", **fields: Any) -> list[Candidate]:
    """Pods of one gang."""
    if scheduler == "coscheduling":
        mark = {"schedulerName": "scheduler-plugins-scheduler", "labels": {"scheduling.x-k8s.io/pod-group": "gang"}}
    else:
        mark = {"schedulerName": "volcano", "annotations": {"scheduling.k8s.io/group-name": "gang"}}
    return [candidate(f"pod-{index}", fields.get("requests"), **mark) for index in range(count)]


def gang(least: int, count: int, **fields: Any) -> GangState:
    """A gang with a PodGroup."""
    return GangState({"minMember": least, **fields.pop("spec", {})}, count, **fields)


def test_gang_that_fits() -> None:
    """All of it is bound at once."""
    bound, held = place(members(2, requests={GPU: 1}), state=gang(2, 2))
    assert (bound, held) == (["pod-0", "pod-1"], {})


def test_gang_that_fits_in_part_takes_nothing() -> None:
    """Nothing is bound, and the room goes to others."""
    other = candidate("other", {GPU: 1}, created="2026-01-02T00:00:00Z")
    bound, held = place([*members(3, requests={GPU: 1}), other], state=gang(3, 3))
    assert bound == ["other"]
    assert held["pod-2"] == f"0/1 nodes are available: 1 Insufficient {GPU}. {NO_VICTIMS}"
    rejected = "PodGroup ns/gang gets rejected due to Pod pod-2 is unschedulable even after PostFilter"
    assert held["pod-0"] == held["pod-1"] == rejected


def test_more_members_than_have_to_fit() -> None:
    """As many as fit are bound once the least number does."""
    bound, held = place(members(3, requests={GPU: 1}), state=gang(2, 3))
    assert bound == ["pod-0", "pod-1"]
    assert set(held) == {"pod-2"}


@pytest.mark.parametrize(
    ("scheduler", "text"),
    [
        pytest.param(
            "coscheduling",
            "0/1 nodes are available: pre-filter pod pod-0 cannot find enough sibling pods, current pods number: 1, "
            f"minMember of group: 3. {NOT_HELPFUL}",
            id="coscheduling",
        ),
        pytest.param(
            "volcano",
            "1/1 tasks in gang unschedulable: Not enough valid tasks for gang-scheduling, valid: 1, min: 3",
            id="volcano",
        ),
    ],
)
def test_gang_that_is_not_there_yet(scheduler: str, text: str) -> None:
    """Its pods wait until there are enough of them."""
    assert place(members(1, scheduler), state=gang(3, 1)) == ([], {"pod-0": text})


def test_gang_of_volcano_that_does_not_fit() -> None:
    """The condition of every pod says how many would fit, and why the others do not."""
    bound, held = place(members(3, "volcano", requests={GPU: 1}), state=gang(3, 3))
    text = (
        "3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; Pending: 1 Unschedulable, "
        f"2 Schedulable. Origin reason is pod-2: 0/1 nodes are unavailable: 1 Insufficient {GPU}."
    )
    assert bound == []
    assert set(held.values()) == {text}


@pytest.mark.parametrize("scheduler", ["coscheduling", "volcano"])
def test_gang_without_pod_group(scheduler: str) -> None:
    """Its pods wait for the PodGroup."""
    assert place(members(1, scheduler)) == ([], {"pod-0": "PodGroup ns/gang not found"})


def test_least_resources() -> None:
    """The node must have room for minResources, which may be more than the pods that exist request."""
    state = gang(1, 1, spec={"minResources": {"cpu": "5", "memory": "9Gi"}})
    text = f"0/1 nodes are available: resource gap: cpu 1, memory 1Gi. {NOT_HELPFUL}"
    assert place(members(1), state=state) == ([], {"pod-0": text})


def test_least_resources_that_make_no_sense() -> None:
    """They are reported, and keep nobody else from being scheduled."""
    bound, held = place([*members(1), candidate("other")], state=gang(1, 1, spec={"minResources": {"cpu": "x"}}))
    assert bound == ["other"]
    assert "resource gap: cpu must be a quantity" in held["pod-0"]


def test_least_resources_of_a_gang_that_runs() -> None:
    """What its own pods have taken counts for minResources: a pod that is replaced is scheduled."""
    others = members(4, requests={"cpu": "1"})
    state = gang(4, 4, spec={"minResources": {"cpu": "4"}}, assigned=others[1:])
    assert place(others[:1], others[1:], state)[0] == ["pod-0"]


def test_gang_whose_others_have_succeeded() -> None:
    """Pods that have succeeded count as scheduled."""
    assert place(members(1), state=gang(3, 3, succeeded=2))[0] == ["pod-0"]


def test_gang_whose_others_cannot_be_scheduled() -> None:
    """What fits is neither bound nor gets an event while the others may still come."""
    placement = Placement(Room(make_node(), []), lambda _: gang(3, 3))
    placement.place(members(2))
    assert (placement.bound, placement.held) == ([], {})
    assert [each.key.name for each in placement.parked[Gang("coscheduling", "ns", "gang")]] == ["pod-0", "pod-1"]


def test_pod_of_a_gang_scheduler_without_a_gang() -> None:
    """It is scheduled like any other."""
    assert place([candidate("pod", schedulerName="volcano")])[0] == ["pod"]
