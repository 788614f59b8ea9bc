"""The state machine of a TrainJob (KEP-2170, "State Transition")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.framework.samples import train_job
from trainer.api.trainjob_status import ConditionReason, ConditionType, JobStatus, TrainJobStatus
from trainer.framework.extension_points import Outcome
from trainer.framework.status import (
    Creation,
    Observation,
    changed_conditions,
    is_finished,
    next_status,
    owned_fields,
)

if TYPE_CHECKING:
    from trainer.kube.objects import Object

BEFORE, NOW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
CREATED = Creation(True, ConditionReason.JOBS_CREATION_SUCCEEDED, "Succeeded to create Jobs")
UNBUILT = Creation(False, ConditionReason.JOBS_BUILD_FAILED, "Failed to build Jobs: x")
COMPLETE = Outcome(ConditionType.COMPLETE, "AllJobsCompleted", "jobset completed successfully")
FAILED = Outcome(ConditionType.FAILED, "FailedJobs", "a job failed")


def condition(kind: str, status: str, reason: str, message: str = "", since: str = BEFORE) -> Object:
    """A condition as JSON."""
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}


def jobs(**counts: int) -> list[JobStatus]:
    """The status of one replicated Job."""
    zeros = {"ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0}
    return [JobStatus.from_object({"name": "node"} | zeros | counts)]


def outline(status: TrainJobStatus) -> tuple[list[tuple[str, str, str]], str | None]:
    """Type, status and reason of the conditions, and the state."""
    return [(c.type, c.status, c.reason) for c in status.conditions or []], status.state


IS_CREATED = ("Created", "True", "JobsCreationSucceeded")


@pytest.mark.parametrize(
    ("before", "suspend", "seen", "conditions", "state"),
    [
        pytest.param(None, False, Observation(CREATED), [IS_CREATED], "Created", id="created"),
        pytest.param(
            None, False, Observation(UNBUILT), [("Created", "False", "JobsBuildFailed")], None, id="build-failed"
        ),
        pytest.param(
            None,
            True,
            Observation(CREATED, jobs=jobs(suspended=1)),
            [IS_CREATED, ("Suspended", "True", "Suspended")],
            "Suspended",
            id="created-suspended",
        ),
        pytest.param(
            {"conditions": [condition("Suspended", "True", "Suspended")], "state": "Suspended"},
            False,
            Observation(CREATED, jobs=jobs(active=1)),
            [("Suspended", "False", "Resumed"), IS_CREATED],
            "Created",
            id="resumed",
        ),
        pytest.param(
            None, False, Observation(CREATED, jobs=jobs(active=1)), [IS_CREATED], "Created", id="pods-are-pending"
        ),
        pytest.param(
            None, False, Observation(CREATED, jobs=jobs(active=1, ready=1)), [IS_CREATED], "Running", id="running"
        ),
        pytest.param(
            {"state": "Running"},
            False,
            Observation(CREATED, jobs=jobs(active=1)),
            [IS_CREATED],
            "Running",
            id="a-pod-that-restarts-does-not-end-running",
        ),
        pytest.param(
            {"state": "Running"},
            True,
            Observation(CREATED, jobs=jobs()),
            [IS_CREATED, ("Suspended", "True", "Suspended")],
            "Suspended",
            id="suspended-while-running",
        ),
        pytest.param(
            {"state": "Running"},
            False,
            Observation(CREATED, COMPLETE, jobs(succeeded=1)),
            [IS_CREATED, ("Complete", "True", "AllJobsCompleted")],
            "Complete",
            id="complete",
        ),
        pytest.param(
            None,
            False,
            Observation(CREATED, FAILED, jobs(failed=1)),
            [IS_CREATED, ("Failed", "True", "FailedJobs")],
            "Failed",
            id="failed",
        ),
        pytest.param(
            {"conditions": [condition("Complete", "True", "AllJobsCompleted")], "state": "Complete"},
            True,
            Observation(),
            [("Complete", "True", "AllJobsCompleted")],
            "Complete",
            id="suspending-a-finished-TrainJob-changes-nothing",
        ),
        pytest.param(
            {"conditions": [condition("Failed", "True", "FailedJobs")], "state": "Failed"},
            False,
            Observation(None, COMPLETE),
            [("Failed", "True", "FailedJobs")],
            "Failed",
            id="an-end-is-final",
        ),
    ],
)
def test_transitions(
    before: Object | None, suspend: bool, seen: Observation, conditions: list[Any], state: str | None
) -> None:
    """Conditions and state follow from what was seen and what they were."""
    job = train_job(suspend=suspend, status=before)
    status = next_status(job, seen, NOW)
    assert outline(status) == (conditions, state)
    again = train_job(suspend=suspend, status=owned_fields(status))
    later = next_status(again, seen, "2027-01-01T00:00:00Z")
    assert owned_fields(later) == owned_fields(status), "doing it twice equals doing it once"


def test_transition_time_changes_only_with_the_status() -> None:
    """A new message keeps the time, a new status does not."""
    previous = {
        "conditions": [
            condition("Created", "True", "JobsCreationSucceeded", "old message"),
            condition("Suspended", "True", "Suspended"),
        ]
    }
    status = next_status(train_job(status=previous), Observation(CREATED), NOW)
    assert [(c.type, c.last_transition_time) for c in status.conditions or []] == [
        ("Created", BEFORE),
        ("Suspended", NOW),
    ]
    assert [c.type for c in changed_conditions(train_job(status=previous).status, status)] == ["Created", "Suspended"]


def test_what_others_own_is_left_out() -> None:
    """Progress and foreign conditions are not in what we apply, so they stay with their owners."""
    previous = {
        "conditions": [
            condition("QuotaReserved", "True", "Kueue"),
            condition("Created", "True", "JobsCreationSucceeded"),
        ],
        "trainerStatus": {"progressPercentage": 3, "lastUpdatedTime": BEFORE},
    }
    status = next_status(train_job(status=previous), Observation(CREATED), NOW)
    assert owned_fields(status).keys() == {"conditions", "state"}
    assert [c["type"] for c in owned_fields(status)["conditions"]] == ["Created"]
    assert [c["type"] for c in owned_fields(TrainJobStatus.from_object(previous))["conditions"]] == ["Created"]


def test_counts_outlive_the_jobs() -> None:
    """When the child Jobs of a finished TrainJob are gone, the last counts stay."""
    previous = {
        "conditions": [condition("Complete", "True", "AllJobsCompleted")],
        "jobsStatus": [job.to_object() for job in jobs(succeeded=1)],
        "state": "Complete",
    }
    assert next_status(train_job(status=previous), Observation(), NOW).jobs_status == jobs(succeeded=1)


@pytest.mark.parametrize(
    ("conditions", "finished"),
    [
        pytest.param([], False, id="no-conditions"),
        pytest.param([condition("Complete", "True", "r")], True, id="complete"),
        pytest.param([condition("Failed", "True", "r")], True, id="failed"),
        pytest.param([condition("Failed", "False", "r")], False, id="not-failed"),
    ],
)
def test_is_finished(conditions: list[Object], finished: bool) -> None:
    """A TrainJob has finished when it is complete or failed."""
    assert is_finished(train_job(status={"conditions": conditions})) is finished
