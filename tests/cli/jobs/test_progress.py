"""Parts of a line about progress."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.cli.jobs.progress import progress_bar, short_remaining, short_value
from trainer.view.progress import TrainingProgress


@pytest.mark.parametrize(
    ("seconds", "summary", "text"),
    [
        pytest.param(2700, "45 minutes", "45m", id="reported"),
        pytest.param(2700, "about 45 minutes", "~45m", id="estimated"),
        pytest.param(30, "30 seconds", "30s", id="seconds"),
        pytest.param(None, None, "", id="unknown"),
    ],
)
def test_short_remaining(seconds: int | None, summary: str | None, text: str) -> None:
    """The remaining time fits into a column, and an estimate can be recognised."""
    status: dict[str, Any] = {"estimatedRemainingSeconds": seconds, "estimatedRemainingTimeSummary": summary}

    assert short_remaining(TrainingProgress.of(status)) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param("0.2347", "0.2347", id="short"),
        pytest.param("0.1000", "0.1000", id="digits are kept"),
        pytest.param("0.0000123456", "1.235e-05", id="small"),
        pytest.param("1" * 400, "1" * 400, id="beyond floats"),
        pytest.param("not a number", "not a number", id="somebody else wrote it"),
    ],
)
def test_short_value(value: str, text: str) -> None:
    """Numbers are shown with four significant digits where they are long."""
    assert short_value(value) == text


@pytest.mark.parametrize(
    ("percentage", "bar", "plain"),
    [
        pytest.param(0, "░░░░░", "-----", id="nothing"),
        pytest.param(170, "█████", "#####", id="more than all"),
        pytest.param(-1, "░░░░░", "-----", id="less than nothing"),
    ],
)
def test_bar(percentage: int, bar: str, plain: str) -> None:
    """The bar is full at 100 per cent only, and has the same width always."""
    assert progress_bar(percentage, 5).plain == bar
    assert progress_bar(percentage, 5, ascii_only=True).plain == plain
