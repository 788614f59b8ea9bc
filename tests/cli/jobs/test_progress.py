"""Progress as tables tell it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from trainer.api.trainjob_status import TrainerStatus
from trainer.cli.jobs.progress import (
    NOTHING_REPORTED,
    TrainingProgress,
    in_room,
    progress_bar,
    short_value,
)
from trainer.progress.interest import MetricValue

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
    assert (progress.steps, progress.epochs, progress.short_remaining) == ("4500/10000", "2", "9d5h")
    assert progress.updated == datetime(2026, 1, 1, tzinfo=UTC)
    assert TrainingProgress.of(None) is NOTHING_REPORTED


@pytest.mark.parametrize(
    ("seconds", "summary", "text"),
    [
        pytest.param(2700, "45 minutes", "45m", id="reported"),
        pytest.param(2700, "about 45 minutes", "~45m", id="estimated"),
        pytest.param(None, "soon", "soon", id="only words"),
        pytest.param(30, "30 seconds", "30s", id="seconds"),
        pytest.param(0, None, "", id="nothing remains"),
        pytest.param(None, None, "", id="unknown"),
    ],
)
def test_short_remaining(seconds: int | None, summary: str | None, text: str) -> None:
    """The remaining time fits into a column, and an estimate can be recognised."""
    status: dict[str, Any] = {"estimatedRemainingSeconds": seconds, "estimatedRemainingTimeSummary": summary}

    assert TrainingProgress.of(status).short_remaining == text


def test_time_that_is_none() -> None:
    """A time that somebody else has written wrongly is no time."""
    assert TrainingProgress.of({"lastUpdatedTime": "yesterday"}).updated is None


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


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param("0.2347", "0.2347", id="short"),
        pytest.param("0.1000", "0.1000", id="digits are kept"),
        pytest.param("0.23471234", "0.2347", id="long"),
        pytest.param("123456789.5", "1.235e+08", id="large"),
        pytest.param("12345678", "12345678", id="no shorter way"),
        pytest.param("0.0000123456", "1.235e-05", id="small"),
        pytest.param("1" * 400, "1" * 400, id="beyond floats"),
        pytest.param("not a number", "not a number", id="somebody else wrote it"),
    ],
)
def test_short_value(value: str, text: str) -> None:
    """Numbers are shown with four significant digits where they are long."""
    assert short_value(value) == text


@pytest.mark.parametrize(
    ("room", "text"),
    [(None, "ab  cde  f"), (10, "ab  cde  f"), (9, "ab  cde"), (6, "ab"), (1, ""), (-5, "")],
)
def test_room(room: int | None, text: str) -> None:
    """Texts are shown whole or not at all."""
    assert in_room(["ab", "cde", "f"], room) == text


@pytest.mark.parametrize(
    ("percentage", "bar", "plain"),
    [
        pytest.param(0, "░░░░░", "-----", id="nothing"),
        pytest.param(1, "▏░░░░", "-----", id="something"),
        pytest.param(50, "██▌░░", "##---", id="half"),
        pytest.param(99, "████▉", "####-", id="not full"),
        pytest.param(100, "█████", "#####", id="full"),
        pytest.param(170, "█████", "#####", id="more than all"),
        pytest.param(-1, "░░░░░", "-----", id="less than nothing"),
    ],
)
def test_bar(percentage: int, bar: str, plain: str) -> None:
    """The bar is full at 100 per cent only, and has the same width always."""
    assert progress_bar(percentage, 5).plain == bar
    assert progress_bar(percentage, 5, ascii_only=True).plain == plain
