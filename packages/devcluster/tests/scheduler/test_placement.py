"""One round of scheduling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from packages.devcluster.tests.scheduler.objects import candidate, make_node
from trainer_devcluster.scheduler.candidate import Candidate
from trainer_devcluster.scheduler.node_fit import Room
from trainer_devcluster.scheduler.placement import GangState, Placement

DEVICES = "no new claims to deallocate"
NOT_HELPFUL = f"{DEVICES}, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
GPU = "nvidia.com/gpu"


def place(
    waiting: Sequence[Candidate], placed: Sequence[Candidate] = (), state: GangState | None = None
) -> tuple[list[str], dict[str, str]]:
    """Names of the pods that are bound, in order, and the reason of the others."""
    placement = Placement(Room(make_node(), placed), lambda _: state or GangState(None))
    placement.place(waiting)
    return [each.key.name for each in placement.bound], {each.key.name: text for each, text in placement.held.items()}


@pytest.mark.parametrize(
    ("pod", "others", "text"),
    [
        pytest.param(
            {"requests": {"cpu": "16"}}, [], f"0/1 nodes are available: 1 Insufficient cpu. {NOT_HELPFUL}", id="never"
        ),
        pytest.param(
            {"requests": {GPU: 1}, "preemptionPolicy": "Never"},
            [{"requests": {GPU: 2}}],
            f"0/1 nodes are available: 1 Insufficient {GPU}. {DEVICES}, "
            "preemption: not eligible due to preemptionPolicy=Never.",
            id="never-preempts",
        ),
    ],
)
def test_messages(pod: dict[str, Any], others: list[dict[str, Any]], text: str) -> None:
    """They are those of kube-scheduler, which also says why it does not make room."""
    placed = [candidate(f"other-{index}", **each) for index, each in enumerate(others)]
    assert place([candidate("pod", **pod)], placed)[1] == {"pod": text}


def members(count: int, scheduler: str = "coscheduling", **fields: Any) -> list[Candidate]:
    """Pods of one gang."""
    mark: dict[str, Any]
    if scheduler == "kubernetes":
        mark = {"schedulingGroup": {"podGroupName": "gang"}}
    elif scheduler == "coscheduling":
        mark = {"schedulerName": "scheduler-plugins-scheduler", "labels": {"scheduling.x-k8s.io/pod-group": "gang"}}
    else:
        mark = {"schedulerName": "volcano", "annotations": {"scheduling.k8s.io/group-name": "gang"}}
    return [candidate(f"pod-{index}", fields.get("requests"), **mark) for index in range(count)]


def gang(least: int, count: int, **fields: Any) -> GangState:
    """A gang with a PodGroup."""
    return GangState({"minMember": least, **fields.pop("spec", {})}, count, **fields)


def test_more_members_than_have_to_fit() -> None:
    """As many as fit are bound once the least number does."""
    bound, held = place(members(3, requests={GPU: 1}), state=gang(2, 3))
    assert bound == ["pod-0", "pod-1"]
    assert set(held) == {"pod-2"}


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


POLICY = {"minCount": 3}


@pytest.mark.parametrize(
    ("count", "state", "bound", "held"),
    [
        pytest.param(3, GangState(None), [], set(), id="no-group"),
        pytest.param(2, GangState({"schedulingPolicy": {"gang": POLICY}}, 2), [], set(), id="too-few"),
        pytest.param(3, GangState({"schedulingPolicy": {"gang": POLICY}}, 3), [], {0, 1, 2}, id="no-room"),
        pytest.param(3, GangState({"schedulingPolicy": {"basic": {}}}, 3), [0, 1], {2}, id="one-by-one"),
        pytest.param(
            2, GangState({"schedulingPolicy": {"gang": POLICY}}, 3, succeeded=1), [0, 1], set(), id="one-has-ended"
        ),
    ],
)
def test_gang_of_kubernetes(count: int, state: GangState, bound: list[int], held: set[int]) -> None:
    """kube-scheduler binds all or none, and says nothing before the gang can be tried."""
    names, texts = place(members(count, "kubernetes", requests={GPU: 1}), state=state)
    assert names == [f"pod-{index}" for index in bound]
    assert texts.keys() == {f"pod-{index}" for index in held}
    if not bound and held:
        assert texts["pod-0"] == (
            "pod group is unschedulable, minCount (3) cannot be satisfied: 2 scheduled, 0 remaining"
        )
        assert texts["pod-2"].startswith("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")


def preempt(spec: dict[str, Any], *placed: Candidate, count: int = 2) -> tuple[list[list[str]], dict[str, str]]:
    """Whom a gang of priority 10 makes go, and what is said of those that wait; a pod of no priority waits as well."""
    states = {
        "gang": GangState({"schedulingPolicy": {"gang": {"minCount": count}}, "priority": 10, **spec}, count),
        "low": GangState({"disruptionMode": {"all": {}}, "schedulingPolicy": {"gang": {"minCount": 2}}}, 2),
    }
    waiting = [
        candidate(f"pod-{index}", {GPU: 1}, schedulingGroup={"podGroupName": "gang"}, priority=10)
        for index in range(count)
    ]
    placement = Placement(Room(make_node(), placed), lambda gang: states[gang.name], preempts=True)
    placement.place([candidate("late", {GPU: 1}), *waiting])
    assert placement.bound == []
    victims = [sorted(pod.key.name for pod in unit) for unit in placement.victims]
    return victims, {each.key.name: text for each, text in placement.held.items() if each.key.name != "late"}


def low(name: str, gpus: int = 1, **fields: Any) -> Candidate:
    """A pod on the node."""
    return candidate(name, {GPU: gpus}, nodeName="laptop", **fields)


LOW_GROUP = {"podGroupName": "low"}
WAITS = {"pod-0": "pod group is waiting for preemption to complete"}


@pytest.mark.parametrize(
    ("count", "placed", "victims"),
    [
        pytest.param(1, [low("a", 2)], [["a"]], id="one"),
        pytest.param(1, [low("a", priority=5), low("b", priority=1)], [["b"]], id="the-least-important"),
        pytest.param(
            1,
            [low("a", created="2026-01-01T00:00:00Z"), low("b", created="2026-01-02T00:00:00Z")],
            [["b"]],
            id="the-youngest",
        ),
        pytest.param(
            1, [low("a", schedulingGroup=LOW_GROUP), low("b", schedulingGroup=LOW_GROUP)], [["a", "b"]], id="a-group"
        ),
        pytest.param(1, [low("a", priority=5), low("b", priority=10)], [["a"]], id="not-its-equal"),
        pytest.param(2, [low("a", priority=5), low("b", priority=1)], [["a"], ["b"]], id="both"),
    ],
)
def test_preemption(count: int, placed: list[Candidate], victims: list[list[str]]) -> None:
    """A gang makes as few go as it needs, a group as a whole, and nobody else gets their room."""
    found, held = preempt({}, *placed, count=count)
    assert found == victims
    assert set(held.values()) == set(WAITS.values())


@pytest.mark.parametrize(
    ("spec", "placed"),
    [
        pytest.param({}, [low("a", priority=10), low("b", 1)], id="not-enough"),
        pytest.param({"schedulingConstraints": {}}, [low("a", 2)], id="empty-constraints-are-none"),
        pytest.param({"schedulingConstraints": {"topology": [{"key": "rack"}]}}, [low("a", 2)], id="constrained"),
    ],
)
def test_no_preemption(spec: dict[str, Any], placed: list[Candidate]) -> None:
    """No pod is preempted needlessly, and none for a gang with constraints."""
    victims, held = preempt(spec, *placed)
    if spec == {"schedulingConstraints": {}}:
        assert victims == [["a"]]
    else:
        assert victims == []
        assert not any(text in WAITS.values() for text in held.values())


def test_victims_that_are_going() -> None:
    """While they end nobody else has to go: they are given again, and take their room until they have ended."""
    going = low("a", 2)
    going = replace(going, is_terminating=True)
    victims, held = preempt({}, going)
    assert victims == [["a"]]
    assert set(held) == {"pod-0", "pod-1"}


def test_two_gangs_that_preempt() -> None:
    """A pod that goes for the first of them goes once, and the second does not take its room."""
    placed = [low("a", priority=5), low("b", priority=1)]
    waiting = [
        candidate(name, {GPU: 1}, schedulingGroup={"podGroupName": name}, priority=10) for name in ("first", "second")
    ]
    state = GangState({"schedulingPolicy": {"gang": {"minCount": 1}}, "priority": 10}, 1)
    placement = Placement(Room(make_node(), placed), lambda _: state, preempts=True)
    placement.place(waiting)
    assert [pod.key.name for unit in placement.victims for pod in unit] == ["b", "a"]


def test_priorities_of_a_gang() -> None:
    """kube-scheduler does not schedule a gang with pods of another priority than that of their PodGroup."""
    victims, held = preempt({"priority": 7}, low("a", 2))
    assert victims == []
    text = "all pods in a single pod group should have the same priority as the pod group's priority, got 10 and 7"
    assert held == {"pod-0": text, "pod-1": text}
