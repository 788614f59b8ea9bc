"""What is shown of a TrainJob."""

from __future__ import annotations

from typing import Any

import pytest

from tests.dashboard.conftest import train_job
from trainer.dashboard.rows import page_of, row_of

TIME = "2026-01-01T00:10:00Z"


def condition(kind: str, status: str = "True", message: str = "first\nsecond") -> dict[str, Any]:
    return {"type": kind, "status": status, "message": message, "lastTransitionTime": TIME}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({}, {"state": "Submitted", "message": "", "progress": None, "ended": None}, id="untouched"),
        pytest.param(
            {"state": "Running", "trainerStatus": {"progressPercentage": 40, "estimatedRemainingSeconds": 60}},
            {"state": "Running", "progress": 40, "remaining": 60, "ended": None},
            id="running",
        ),
        pytest.param(
            {"state": "Pending", "conditions": [condition("Pending")]},
            {"state": "Pending", "message": "first"},
            id="pending",
        ),
        pytest.param(
            {"state": "Running", "conditions": [condition("Pending", "False")]},
            {"state": "Running", "message": ""},
            id="no-longer-pending",
        ),
        pytest.param(
            {"state": "Blocked", "conditions": [condition("Created", "False")]},
            {"state": "Blocked", "message": "first"},
            id="blocked",
        ),
        pytest.param(
            {
                "state": "Running",
                "trainerStatus": {"progressPercentage": 40, "estimatedRemainingSeconds": 60},
                "conditions": [condition("Failed")],
            },
            {"state": "Failed", "message": "first", "progress": 40, "remaining": None, "ended": TIME},
            id="failed-before-the-state-says-so",
        ),
        pytest.param({"scale": {"nodes": 5}}, {"nodes": 5}, id="elastic"),
        pytest.param({"trainerStatus": "nonsense", "conditions": None}, {"progress": None}, id="malformed"),
    ],
)
def test_row(status: dict[str, Any], expected: dict[str, Any]) -> None:
    """A row has the state that the conditions decide, and the progress as it is reported."""
    row = row_of(train_job(**status))
    assert {name: row[name] for name in expected} == expected


def test_long_message() -> None:
    """A row has a part of a message, and the page all of it."""
    job = train_job(state="Failed", conditions=[condition("Failed", message="x" * 1000)])
    assert len(row_of(job)["message"]) == 200
    assert len(page_of(job)["conditions"][0]["message"]) == 1000


def test_steps() -> None:
    """The page has the steps beside the training, in the order in which they run."""
    job = train_job(exporterStatus={"state": "Running"}, dataInitializerStatus={"state": "Complete"})
    assert [(step["name"], step["state"]) for step in page_of(job)["steps"]] == [
        ("dataset-initializer", "Complete"),
        ("model-exporter", "Running"),
    ]
