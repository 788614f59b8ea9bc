"""The status of PodGroups."""

from __future__ import annotations

import pytest

from trainer.kube.objects import Object
from trainer_devcluster.scheduler.candidate import COSCHEDULING, KUBERNETES, VOLCANO
from trainer_devcluster.scheduler.pod_groups import status_of

NOW = "2026-01-01T00:00:00Z"
WAITS = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}


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
    ("phases", "of_coscheduling", "of_volcano"),
    [
        pytest.param(("Pending",), "Pending", "Pending", id="too-few"),
        pytest.param(("Pending", "Pending"), "Scheduling", "Inqueue", id="wait"),
        pytest.param(("Bound", "Running"), "Running", "Running", id="bound"),
        pytest.param(("Succeeded", "Running"), "Running", "Running", id="one-has-ended"),
        pytest.param(("Succeeded", "Failed"), "Finished", "Completed", id="ended"),
    ],
)
def test_phases(phases: tuple[str, ...], of_coscheduling: str, of_volcano: str) -> None:
    """The phase follows the pods, in the words of either scheduler."""
    for scheduler, phase in ((COSCHEDULING, of_coscheduling), (VOLCANO, of_volcano)):
        assert status_of(scheduler, {"spec": {"minMember": 2}}, pods(*phases), NOW) == {"phase": phase}


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
    status = status_of(KUBERNETES, group, found, NOW)
    conditions = [(entry["status"], entry["reason"], entry["message"]) for entry in status.get("conditions", [])]
    assert conditions == ([expected] if expected else [])
    if expected and expected[0] == "True":
        assert status_of(KUBERNETES, {**group, "status": status}, [], "later") == status
