"""What is shown of a TrainJob."""

from __future__ import annotations

from typing import Any

import pytest

from packages.dashboard.tests.conftest import train_job
from trainer_dashboard.rows import page_of, row_of

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


@pytest.mark.parametrize(
    ("resources", "devices"),
    [
        pytest.param({}, None, id="as-the-runtime-says"),
        pytest.param({"limits": {"cpu": "4"}}, None, id="no-devices-of-its-own"),
        pytest.param({"limits": {"nvidia.com/gpu": "8"}}, 8, id="limits"),
        pytest.param({"requests": {"nvidia.com/gpu": 2}}, 2, id="requests"),
        pytest.param({"limits": {"nvidia.com/gpu": 0}}, 0, id="none"),
        pytest.param({"limits": {"nvidia.com/gpu": "9Ei"}}, None, id="no-number-of-devices"),
    ],
)
def test_devices(resources: dict[str, Any], devices: int | None) -> None:
    """The GPUs of a TrainJob are known where it states them itself."""
    assert row_of(train_job(spec={"trainer": {"resourcesPerNode": resources}}))["devicesPerNode"] == devices


@pytest.mark.parametrize(
    ("metadata", "owner"),
    [
        pytest.param({}, "", id="nobody"),
        pytest.param(
            {"ownerReferences": [{"kind": "A", "name": "a"}, {"kind": "Experiment", "name": "e", "controller": True}]},
            "Experiment e",
            id="controller",
        ),
        pytest.param({"ownerReferences": [{"kind": "Workflow", "name": "w"}]}, "Workflow w", id="owner"),
        pytest.param({"labels": {"app.kubernetes.io/created-by": "<b>me</b>"}}, "<b>me</b>", id="label"),
        pytest.param({"annotations": {"app.kubernetes.io/created-by": "me" * 500}}, "me" * 100, id="annotation"),
    ],
)
def test_owner(metadata: dict[str, Any], owner: str) -> None:
    """The owner is what has made the TrainJob, or whom it names."""
    job = train_job()
    job["metadata"] |= metadata
    assert row_of(job)["owner"] == owner


def test_bounds() -> None:
    """The page knows how many nodes an elastic training may have."""
    assert page_of(train_job(scale={"nodes": 2, "minNodes": 1, "maxNodes": 4}))["bounds"] == {"least": 1, "most": 4}
    assert page_of(train_job())["bounds"] is None


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
