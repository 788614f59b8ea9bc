"""What the status of a TrainJob says to people."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from trainer.cli.jobs.state import JobState
from trainer.view.progress import StepProgress, TrainingProgress


def condition(kind: str, status: str, reason: str, message: str = "") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason, "message": message}


CREATED = condition("Created", "True", "JobsCreationSucceeded", "Succeeded to create Jobs")


@pytest.mark.parametrize(
    ("status", "state", "text"),
    [
        pytest.param(
            {"state": "Running", "conditions": [CREATED], "trainerStatus": {"progressPercentage": 0}},
            JobState("Running", TrainingProgress(percentage=0)),
            "Running  0 %",
            id="progress of zero is progress",
        ),
        pytest.param(
            {
                "state": "Suspended",
                "trainerStatus": {"progressPercentage": 45, "estimatedRemainingTimeSummary": "2 min"},
            },
            JobState("Suspended", TrainingProgress(percentage=45, remaining="2 min")),
            "Suspended  45 %",
            id="what is suspended has no end to expect",
        ),
        pytest.param(
            {
                "state": "Pending",
                "conditions": [
                    CREATED,
                    condition("Pending", "True", "ErrX", "ErrX: 1 pod waits: x\nErrY: 2 pods wait"),
                ],
            },
            JobState("Pending", reason="ErrX", message="1 pod waits: x; ErrY: 2 pods wait"),
            "Pending",
            id="pods cannot start",
        ),
        pytest.param(
            {
                "state": "Running",
                "conditions": [CREATED],
                "dataInitializerStatus": {"state": "Complete"},
                "modelInitializerStatus": {
                    "state": "Running",
                    "progressPercentage": 7,
                    "estimatedRemainingTimeSummary": "2 hours",
                },
            },
            JobState(
                "Running",
                steps=(
                    StepProgress("dataset-initializer", "Complete", TrainingProgress()),
                    StepProgress("model-initializer", "Running", TrainingProgress(percentage=7, remaining="2 hours")),
                ),
            ),
            "Running  model-initializer  7 %  ETA 2 hours",
            id="a model is fetched",
        ),
        pytest.param(
            {
                "state": "Running",
                "conditions": [CREATED],
                "trainerStatus": {"progressPercentage": 100, "lastUpdatedTime": "2026-01-02T10:00:00Z"},
                "exporterStatus": {"state": "Running", "progressPercentage": 7},
            },
            JobState(
                "Running",
                TrainingProgress(percentage=100, updated=datetime(2026, 1, 2, 10, tzinfo=UTC)),
                steps=(StepProgress("model-exporter", "Running", TrainingProgress(percentage=7)),),
            ),
            "Running  model-exporter  7 %",
            id="the exporter comes after the training",
        ),
    ],
)
def test_state_of(status: dict[str, Any], state: JobState, text: str) -> None:
    """The state is read from `status.state`, conditions and trainerStatus."""
    assert JobState.of({"status": status}) == state
    assert str(state) == text


EARLY = TrainingProgress(percentage=10, updated=datetime(2026, 1, 1, tzinfo=UTC))
LATE = TrainingProgress(percentage=20, updated=datetime(2026, 1, 2, tzinfo=UTC))


@pytest.mark.parametrize(
    ("reported", "logged", "shown"),
    [
        pytest.param(EARLY, LATE, LATE, id="the log is ahead"),
        pytest.param(LATE, EARLY, LATE, id="the status is ahead"),
        pytest.param(replace(EARLY, percentage=9), EARLY, EARLY, id="in the same second the log is ahead"),
    ],
)
def test_progress_from_the_log(reported: TrainingProgress, logged: TrainingProgress, shown: TrainingProgress) -> None:
    """Of what the status and the log tell of the progress, the newer counts."""
    assert JobState("Running", reported).with_progress(logged) == JobState("Running", shown)


def test_explanation_cannot_command_the_terminal() -> None:
    """Texts of the cluster become one line of printable characters."""
    state = JobState("Blocked", reason="Bad\x1b[2J", message="a\nb\u202ec")

    assert state.explanation == "Bad\\x1b[2J: a b\\u202ec"
    assert replace(state, word="Failed").explanation == "a b\\u202ec", "a failure comes first"
