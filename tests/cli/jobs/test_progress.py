"""Parts of a line about progress."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.cli.jobs.progress import metrics_in, progress_bar, short_remaining, short_value
from trainer.progress.interest import MetricValue
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
        pytest.param("0.23471", "0.2347", id="five digits"),
        pytest.param("-1.000049", "-1", id="negative"),
        pytest.param("0.0000123456", "1.235e-05", id="small"),
        pytest.param("1.0000000000000001e-05", "1e-05", id="as floats are written"),
        pytest.param("123456.789", "123457", id="the whole part stays"),
        pytest.param("12345678", "12345678", id="shorter as it is"),
        pytest.param("1234567890.5", "1.235e+09", id="large"),
        pytest.param("5", "5", id="one digit"),
        pytest.param("nan", "nan", id="no number"),
        pytest.param("1" * 400, "1" * 400, id="beyond floats"),
        pytest.param("not a number", "not a number", id="somebody else wrote it"),
    ],
)
def test_short_value(value: str, text: str) -> None:
    """Numbers are shown with four significant digits."""
    assert short_value(value) == text


@pytest.mark.parametrize(
    ("room", "text"),
    [
        pytest.param(None, "損失損失 0.2347  eval acc 0.9", id="no limit"),
        pytest.param(29, "損失損失 0.2347  eval acc 0.9", id="all fit"),
        pytest.param(28, "損失損失 0.2347", id="whole ones"),
        pytest.param(13, "損…失 0.2347", id="a short name"),
        pytest.param(8, "… 0.2347", id="no name"),
        pytest.param(6, "0.2347", id="the value alone"),
        pytest.param(5, "", id="nothing"),
    ],
)
def test_metrics_in(room: int | None, text: str) -> None:
    """As many metrics as fit are shown, and no value is cut."""
    assert metrics_in([MetricValue("損失損失", "0.23471"), MetricValue("acc", "0.9", is_eval=True)], room) == text


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
