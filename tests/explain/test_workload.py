"""What Kueue says of Workloads, as its releases write it."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.explain.workload import standing_of
from trainer.kube.objects import Object

NO_QUEUE = "LocalQueue team-b doesn't exist"
TOO_MUCH = (
    "couldn't assign flavors to pod set node: insufficient quota for cpu in flavor default, previously considered "
    "podsets requests (0) + current podset request (10) > maximum capacity (2)"
)
NO_GPUS = "couldn't assign flavors to pod set node: resource nvidia.com/gpu unavailable in ClusterQueue"
IN_USE = "couldn't assign flavors to pod set node: insufficient unused quota for cpu in flavor default, 1 more needed"


def workload(*conditions: tuple[str, ...], active: bool = True, **status: Any) -> Object:
    """A Workload with conditions of type, status, reason and message."""
    return {
        "spec": {"queueName": "team-a", "active": active},
        "status": {
            "conditions": [
                dict(zip(("type", "status", "reason", "message"), each, strict=False)) for each in conditions
            ]
        }
        | status,
    }


def unreserved(reason: str, message: str = "") -> tuple[str, ...]:
    return ("QuotaReserved", "False", reason, message)


@pytest.mark.parametrize(
    ("reason", "message", "expected", "remedy"),
    [
        pytest.param("Misconfigured", NO_QUEUE, "Misconfigured", "a queue that exists", id="no-queue"),
        pytest.param("ExceedsMaxQuota", TOO_MUCH, "ExceedsMaxQuota", "ask for fewer nodes", id="above-the-quota"),
        pytest.param(
            "NoMatchingFlavor", NO_GPUS, "NoMatchingFlavor", "ask for resources that the queue has", id="flavor"
        ),
        pytest.param("Suspended", "LocalQueue team-a is inactive", "QueueStopped", "stopPolicy", id="stopped"),
        pytest.param("Inadmissible", NO_QUEUE, "Inadmissible", "name a queue that exists", id="older-release"),
        pytest.param("AdmissionGated", "Admission is gated by: x", "AdmissionGated", "admission-gated-by", id="gated"),
        pytest.param("OnHold", "scaled to zero", "OnHold", "lets it go", id="on-hold"),
    ],
)
def test_what_does_not_start_by_itself(reason: str, message: str, expected: str, remedy: str) -> None:
    """Nobody has to wait for quota where Kueue says that quota is not what is missing."""
    standing = standing_of(workload(unreserved(reason, message)))
    assert (standing.reason, standing.waits) == (expected, False)
    assert standing.message.endswith(f"; {message}")
    assert remedy in standing.remedy
    assert "wait" not in standing.remedy


@pytest.mark.parametrize(
    ("reason", "message", "remedy"),
    [
        pytest.param("WaitingForQuota", IN_USE, "wait until quota is free", id="quota"),
        pytest.param("Pending", IN_USE, "what exceeds the maximum capacity", id="older-release"),
        pytest.param("PendingEvaluation", "Workload is pending evaluation", "about to look at it", id="evaluation"),
        pytest.param(
            "WaitingForPreemptedWorkloads", "Pending the preemption of 1 workload(s)", "gone", id="preemption"
        ),
        pytest.param("WaitingForPodsReady", "waiting for all admitted workloads", "pods of those are ready", id="pods"),
    ],
)
def test_what_waits(reason: str, message: str, remedy: str) -> None:
    """What may start by itself waits, and for what is said."""
    standing = standing_of(workload(unreserved(reason, message)))
    assert (standing.reason, standing.waits) == ("Queued", True)
    assert standing.message.endswith(message)
    assert remedy in standing.remedy


def test_unknown_reason() -> None:
    """A reason of a newer release is quoted with its message, without a guess what would help."""
    standing = standing_of(workload(unreserved("SomethingNew", "the moon is full")))
    assert (standing.reason, standing.message) == ("Queued", "Kueue says SomethingNew; the moon is full")
    assert standing.remedy == "see what Kueue means by SomethingNew: its message says what holds the Workload"


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        pytest.param("Preempted", "wait until quota is free", id="preempted"),
        pytest.param("PodsReadyTimeout", "find out why its pods were not ready in time", id="pods-not-ready"),
        pytest.param("AdmissionCheck", "wait until the admission check is tried again", id="admission-check"),
        pytest.param("ClusterQueueStopped", "stopPolicy", id="cluster-queue-stopped"),
        pytest.param("LocalQueueStopped", "stopPolicy", id="local-queue-stopped"),
        pytest.param("NodeFailures", "wait until other nodes are free", id="node-failures"),
        pytest.param("SomethingNew", "wait until quota is free", id="unknown"),
    ],
)
def test_eviction(reason: str, remedy: str) -> None:
    """What was evicted says so with Kueue's words, and waits for what it was evicted for."""
    standing = standing_of(
        workload(
            unreserved("WaitingForQuota", IN_USE),
            ("Evicted", "True", reason, "because"),
            requeueState={"count": 1, "requeueAt": "2026-01-01T00:01:00Z"},
        )
    )
    assert (
        standing.message == f"was evicted ({reason}): because; Kueue tries it again at 2026-01-01T00:01:00Z; {IN_USE}"
    )
    assert remedy in standing.remedy


def test_a_reason_that_is_no_queueing_outweighs_an_eviction() -> None:
    """Evicted for another, and its queue is gone meanwhile: it is the queue that has to be corrected."""
    standing = standing_of(
        workload(unreserved("Misconfigured", NO_QUEUE), ("Evicted", "True", "Preempted", "by another"))
    )
    assert standing.reason == "Misconfigured"
    assert "was evicted (Preempted)" in standing.message


@pytest.mark.parametrize(
    ("conditions", "checks", "reason", "message", "remedy"),
    [
        pytest.param(
            (),
            [{"name": "nodes", "state": "Pending", "message": "waits for nodes"}, {"name": "budget", "state": "Ready"}],
            "AdmissionCheck",
            "has its quota, and waits for admission checks; nodes: Pending waits for nodes",
            "wait for the admission check",
            id="pending",
        ),
        pytest.param(
            (),
            [{"name": "nodes", "state": "Retry"}],
            "AdmissionCheck",
            "has its quota, and waits for admission checks; nodes: Retry",
            "wait for the admission check",
            id="retry",
        ),
        pytest.param(
            (),
            [{"name": "budget", "state": "Rejected", "message": "spent"}],
            "AdmissionCheck",
            "has its quota, and an admission check rejects it; budget: Rejected spent",
            "correct what the admission check rejects",
            id="rejected",
        ),
        pytest.param(
            (("Evicted", "True", "Preempted", "by another"),),
            [],
            "Evicted",
            "is being evicted; was evicted (Preempted): by another",
            "wait until its pods are gone",
            id="being-evicted",
        ),
        pytest.param(
            (("Admitted", "True"),), [], "Admitted", "is admitted", "have Kueue checked if it stays so", id="admitted"
        ),
    ],
)
def test_with_quota(
    conditions: tuple[tuple[str, ...], ...], checks: list[Object], reason: str, message: str, remedy: str
) -> None:
    """With its quota a Workload waits for admission checks, for its pods to go, or for Kueue to resume the job."""
    standing = standing_of(workload(("QuotaReserved", "True"), *conditions, admissionChecks=checks))
    assert (standing.reason, standing.message) == (reason, message)
    assert remedy in standing.remedy


def test_deactivated() -> None:
    """Kueue says why it has deactivated a Workload, which has to be activated again."""
    why = "The workload is deactivated due to exceeding the maximum number of re-queuing retries"
    standing = standing_of(
        workload(
            unreserved("Deactivated"), ("Evicted", "True", "DeactivatedDueToRequeuingLimitExceeded", why), active=False
        )
    )
    assert (standing.reason, standing.waits) == ("WorkloadInactive", False)
    assert standing.message == f"is inactive; was evicted (DeactivatedDueToRequeuingLimitExceeded): {why}"
    assert "then activate it" in standing.remedy


@pytest.mark.parametrize("status", [None, {}, {"conditions": None, "admissionChecks": "x", "requeueState": []}])
def test_new_workload(status: Object | None) -> None:
    """Before Kueue has looked at a Workload it waits, and nothing is said about it."""
    standing = standing_of({"spec": {"queueName": "team-a"}, "status": status})
    assert (standing.reason, standing.message, standing.waits) == ("Queued", "", True)
