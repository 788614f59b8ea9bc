"""The progress that TrainJobs report."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from trainer.api.trainjob_status import TrainerStatus
from trainer.progress.interest import MetricValue
from trainer.view.progress import NOTHING_REPORTED, TrainingProgress

STATUS = {
    "progressPercentage": 45,
    "estimatedRemainingSeconds": 795649,
    "estimatedRemainingTimeSummary": "9 days 5 hours",
    "currentStep": 4500,
    "totalSteps": 10000,
    "currentEpoch": 2,
    "trainMetrics": {"loss": "0.2347", "a\x1b": "1e-05"},
    "evalMetrics": {"loss": "0.5"},
    "lastUpdatedTime": "2026-01-01T00:00:00Z",
}


def test_reading() -> None:
    """All fields are read, from JSON as from the model, and no name can command a terminal."""
    progress = TrainingProgress.of(STATUS)

    assert progress == TrainingProgress.of(TrainerStatus.from_object(STATUS))
    assert progress.metrics == (
        MetricValue(r"a\x1b", "1e-05"),
        MetricValue("loss", "0.2347"),
        MetricValue("loss", "0.5", is_eval=True),
    )
    assert (progress.steps, progress.epochs) == ("4500/10000", "2")
    assert progress.updated == datetime(2026, 1, 1, tzinfo=UTC)
    assert TrainingProgress.of(None) is NOTHING_REPORTED


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param([], NOTHING_REPORTED, id="no object"),
        pytest.param({"progressPercentage": "45", "currentStep": 1.5}, NOTHING_REPORTED, id="no integers"),
        pytest.param({"trainMetrics": [{"name": "loss", "value": "1"}]}, NOTHING_REPORTED, id="no map"),
        pytest.param({"lastUpdatedTime": "yesterday"}, NOTHING_REPORTED, id="no time"),
        pytest.param({"lastUpdatedTime": 1767225600}, NOTHING_REPORTED, id="number for a time"),
        pytest.param({"progressPercentage": 250}, TrainingProgress(percentage=100), id="more than all"),
        pytest.param({"progressPercentage": -1}, TrainingProgress(percentage=0), id="less than nothing"),
        pytest.param({"estimatedRemainingTimeSummary": 45}, TrainingProgress(remaining="45"), id="number for a text"),
        pytest.param(
            {"trainMetrics": {"loss": 0.5}},
            TrainingProgress(metrics=(MetricValue("loss", "0.5"),)),
            id="number for a value",
        ),
    ],
)
def test_written_by_somebody_else(status: Any, expected: TrainingProgress) -> None:
    """What another manager has written is shown where it makes sense."""
    assert TrainingProgress.of(status) == expected
