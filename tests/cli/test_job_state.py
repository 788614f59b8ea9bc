"""What the status of a TrainJob says to people."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.cli.job_state import JobState


def condition(kind: str, status: str, reason: str, message: str = "") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason, "message": message}


CREATED = condition("Created", "True", "JobsCreationSucceeded", "Succeeded to create Jobs")


@pytest.mark.parametrize(
    ("status", "state", "text"),
    [
        pytest.param({}, JobState("Pending"), "Pending", id="not looked at"),
        pytest.param({"state": "Created", "conditions": [CREATED]}, JobState("Created"), "Created", id="created"),
        pytest.param(
            {"state": "Running", "conditions": [CREATED], "trainerStatus": {"progressPercentage": 0}},
            JobState("Running", progress=0),
            "Running  0 %",
            id="progress of zero is progress",
        ),
        pytest.param(
            {
                "state": "Running",
                "trainerStatus": {"progressPercentage": 45, "estimatedRemainingTimeSummary": "2 min"},
            },
            JobState("Running", progress=45, eta="2 min"),
            "Running  45 %  ETA 2 min",
            id="remaining time",
        ),
        pytest.param(
            {"conditions": [condition("Created", "False", "JobsBuildFailed", "no runtime x")]},
            JobState("Pending", reason="JobsBuildFailed", message="no runtime x"),
            "Pending",
            id="cannot be built",
        ),
        pytest.param(
            {
                "state": "Complete",
                "conditions": [CREATED, condition("Complete", "True", "AllJobsCompleted", "done")],
                "trainerStatus": {"progressPercentage": 99},
            },
            JobState("Complete", progress=99, reason="AllJobsCompleted", message="done"),
            "Complete",
            id="complete",
        ),
        pytest.param(
            {"state": "Running", "conditions": [CREATED, condition("Failed", "True", "FailedJobs", "exit 3")]},
            JobState("Failed", reason="FailedJobs", message="exit 3"),
            "Failed",
            id="the condition decides",
        ),
    ],
)
def test_state_of(status: dict[str, Any], state: JobState, text: str) -> None:
    """The state is read from `status.state`, conditions and trainerStatus."""
    assert JobState.of({"status": status}) == state
    assert str(state) == text


def test_properties() -> None:
    """A state knows whether it is the last one, a good one, and whether a controller has spoken."""
    assert JobState.of({}).is_untouched
    assert not JobState("Pending", reason="JobsBuildFailed").is_untouched
    assert JobState("Complete").is_terminal
    assert JobState("Complete").is_complete
    assert JobState("Failed").is_terminal
    assert not JobState("Failed").is_complete
    assert not JobState("Running").is_terminal
    assert JobState("Failed", reason="FailedJobs", message="exit 3").explanation == "FailedJobs: exit 3"
    assert not JobState("Running").explanation
