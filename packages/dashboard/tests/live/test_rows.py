"""What the page gets of a TrainJob."""

from __future__ import annotations

import pytest

from packages.dashboard.tests.conftest import train_job
from trainer.kube.objects import Object
from trainer_dashboard.live import rows


def page_of(job: Object) -> Object:
    """A TrainJob that runs nothing."""
    return rows.page_of(job, {})


@pytest.mark.parametrize("state", ["Failed", "Stopping"])
def test_row(state: str) -> None:
    """A row has what the page shows and sorts by; of what has ended or is stopping nothing remains."""
    progress = {"progressPercentage": 40, "estimatedRemainingSeconds": 60, "estimatedRemainingTimeSummary": "1 minute"}
    row = page_of(train_job(state="Running", trainerStatus=progress, scale={"nodes": 5}))
    assert (row["state"], row["nodes"], row["progress"]) == ("Running", 5, 40)
    assert (row["remaining"], row["remainingText"], row["ended"]) == (60, "1 minute", None)
    row = page_of(train_job(state=state, trainerStatus=progress))
    assert (row["state"], row["progress"], row["remaining"], row["remainingText"]) == (state, 40, None, "")


def test_since() -> None:
    """A row says since when its state is explained as it is."""
    time = "2026-01-01T00:00:00Z"
    pending = {"type": "Pending", "status": "True", "message": "no node", "lastTransitionTime": time}
    assert page_of(train_job(state="Pending", conditions=[pending]))["since"] == time
    assert page_of(train_job(state="Running", conditions=[pending]))["since"] is None


def test_bounds() -> None:
    """The page knows how many nodes an elastic training may have."""
    assert page_of(train_job(scale={"nodes": 2, "minNodes": 1, "maxNodes": 4}))["bounds"] == {"least": 1, "most": 4}
    assert page_of(train_job())["bounds"] is None


@pytest.mark.parametrize(
    ("state", "unsaved"),
    [("Running", "5 steps would be lost now"), ("Suspended", "5 steps are to be done again"), ("Complete", "")],
)
def test_checkpoint(state: str, unsaved: str) -> None:
    """The page says what it means that there is no later checkpoint."""
    progress = {"currentStep": 85, "checkpoint": {"step": 80, "time": "2026-01-01T00:00:00Z"}}
    assert page_of(train_job(state=state, trainerStatus=progress))["unsaved"] == unsaved
    assert page_of(train_job(state=state))["unsaved"] == ""


def test_restarts() -> None:
    """They are counted by cause."""
    counts = {"disruptions": 1, "failures": 0, "maxRestarts": 0}
    assert page_of(train_job(restarts=counts))["restarts"] == "1 disruption"
    assert page_of(train_job())["restarts"] == ""


def test_long_message() -> None:
    """A row has whole words of a message, with dots for the rest, and the page all of it."""
    failed = {"type": "Failed", "status": "True", "message": "reason " * 200}
    job = train_job(state="Failed", conditions=[failed])
    job["metadata"]["annotations"] = {"app.kubernetes.io/created-by": "me" * 500}
    page = page_of(job)
    assert page["message"] == ("reason " * 28).rstrip() + "..."
    assert page["owner"] == "me" * 98 + "m..."
    assert len(page["conditions"][0]["message"]) > 1000


def test_steps() -> None:
    """The page has the steps beside the training, in the order in which they run."""
    job = train_job(exporterStatus={"state": "Running"}, dataInitializerStatus={"state": "Complete"})
    assert [(step["name"], step["state"]) for step in page_of(job)["steps"]] == [
        ("dataset-initializer", "Complete"),
        ("model-exporter", "Running"),
    ]
