"""The status of PodGroups."""

from __future__ import annotations

import pytest

from trainer.kube.objects import Object
from trainer_devcluster.scheduler.pod_groups import coscheduling_status, kubernetes_status, volcano_status

NOW = "2026-01-01T00:00:00Z"
WAITS = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}


def group(phase: str = "", least: int = 2, **status: object) -> Object:
    """A PodGroup."""
    return {"spec": {"minMember": least}, "status": ({"phase": phase} if phase else {}) | status}


def pods(*phases: str) -> list[Object]:
    """Pods in these phases; a pod that is Pending has no node, one that is Bound has one and is Pending."""
    return [
        {
            "metadata": {"namespace": "ns", "ownerReferences": [{"name": "job"}]},
            "spec": {} if phase == "Pending" else {"nodeName": "laptop"},
            "status": {"phase": "Pending" if phase == "Bound" else phase, "conditions": [WAITS]},
        }
        for phase in phases
    ]


@pytest.mark.parametrize(
    ("before", "phases", "expected"),
    [
        pytest.param(
            "Pending",
            ("Pending", "Pending"),
            {"phase": "Scheduling", "scheduleStartTime": NOW, "occupiedBy": "ns/job"},
            id="enough",
        ),
        pytest.param(
            "Running",
            ("Succeeded", "Succeeded"),
            {"phase": "Finished", "running": 0, "succeeded": 2, "failed": 0},
            id="all-succeeded",
        ),
        pytest.param(
            "Running",
            ("Running", "Failed"),
            {"phase": "Failed", "running": 1, "succeeded": 0, "failed": 1},
            id="one-failed",
        ),
        pytest.param(
            "Running", ("Running",), {"phase": "Pending", "running": 1, "succeeded": 0, "failed": 0}, id="one-is-gone"
        ),
        pytest.param("Finished", (), {"phase": "Finished"}, id="finished-for-good"),
    ],
)
def test_coscheduling(before: str, phases: tuple[str, ...], expected: Object) -> None:
    """The phase follows the pods as the controller of scheduler-plugins has it."""
    assert coscheduling_status(group(before), pods(*phases), NOW) == expected


@pytest.mark.parametrize(
    ("phases", "phase", "counts", "condition"),
    [
        pytest.param(("Running", "Pending"), "Unknown", {"running": 1}, "Unschedulable", id="one-lost"),
        pytest.param(("Succeeded", "Failed"), "Completed", {"succeeded": 1, "failed": 1}, "Unschedulable", id="ended"),
    ],
)
def test_volcano(phases: tuple[str, ...], phase: str, counts: Object, condition: str | None) -> None:
    """The phase follows the pods as Volcano has it, and a condition says whether they are scheduled."""
    status = volcano_status(group(), pods(*phases), NOW)
    kinds = [entry["type"] for entry in status.pop("conditions", [])]
    assert status == {"phase": phase} | counts
    assert kinds == ([condition] if condition and phase != "Completed" else [])


HELD = WAITS | {"message": "pod group is unschedulable, minCount (2) cannot be satisfied: 1 scheduled, 0 remaining"}


@pytest.mark.parametrize(
    ("phases", "verdict", "expected"),
    [
        pytest.param(("Pending", "Pending"), {}, None, id="not-tried-yet"),
        pytest.param(
            ("Pending", "Pending"),
            WAITS,
            ("False", "Unschedulable", "minCount (2) cannot be satisfied: 0 scheduled, 0 remaining"),
            id="none-fits",
        ),
        pytest.param(
            ("Running", "Pending"),
            WAITS,
            ("False", "Unschedulable", "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining"),
            id="one-is-bound",
        ),
        pytest.param(
            ("Pending",),
            HELD,
            ("False", "Unschedulable", "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining"),
            id="one-would-fit",
        ),
        pytest.param(
            ("Pending",),
            WAITS | {"message": "pod group is waiting for preemption to complete"},
            ("False", "Unschedulable", "pod group is waiting for preemption to complete"),
            id="preempts",
        ),
        pytest.param(
            ("Pending",),
            WAITS | {"message": "all pods in a single pod group should have the same priority as the pod group's"},
            (
                "False",
                "SchedulerError",
                "all pods in a single pod group should have the same priority as the pod group's",
            ),
            id="mixed-priorities",
        ),
        pytest.param(("Bound", "Running"), {}, ("True", "Scheduled", ""), id="bound"),
    ],
)
def test_kubernetes(phases: tuple[str, ...], verdict: Object, expected: tuple[str, str, str] | None) -> None:
    """The condition counts the pods that fit, and stays once the gang has been scheduled."""
    found, group = pods(*phases), {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}
    for pod in found:
        pod["status"]["conditions"] = [verdict] if verdict else []
    status = kubernetes_status(group, found, NOW)
    conditions = [(entry["status"], entry["reason"], entry["message"]) for entry in status.get("conditions", [])]
    assert conditions == ([expected] if expected else [])
    if expected and expected[0] == "True":
        assert kubernetes_status({**group, "status": status}, [], "later") == status
