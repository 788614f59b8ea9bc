"""The trends in the list."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.kube.objects import Object, ObjectKey
from trainer.view.progress import TrainingProgress
from trainer.view.row import TrainJobRow
from trainer_dashboard.live.trends import POINTS, Trends

KEY = ObjectKey("default", "demo")


def reporting(time: int, uid: str = "u", **metrics: Any) -> TrainJobRow:
    status = {"lastUpdatedTime": f"2026-01-01T00:{time // 60:02}:{time % 60:02}Z"} | metrics
    return TrainJobRow(uid, progress=TrainingProgress.of(status))


def test_trend() -> None:
    """Each report adds a value of the metric that is looked at first; other changes of the TrainJob add none."""
    trends = Trends()
    assert trends.add(KEY, TrainJobRow("u")) is None
    trends.add(KEY, reporting(1, trainMetrics={"learning_rate": "0.1", "loss": "2.5"}))
    trends.add(KEY, reporting(1, trainMetrics={"learning_rate": "0.1", "loss": "2.5"}))
    shown = trends.add(KEY, reporting(2, trainMetrics={"learning_rate": "0.1", "loss": "1.23456789"}))
    assert shown == {"name": "loss", "isEval": False, "trend": [2.5, 1.2346]}


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        pytest.param({"evalMetrics": {"accuracy": "0.5"}}, ("accuracy", True), id="evaluation"),
        pytest.param({"trainMetrics": {"loss": "NaN", "other": "1"}}, ("other", False), id="no-number"),
        pytest.param({"trainMetrics": {"loss": "inf"}}, None, id="infinite"),
        pytest.param({"trainMetrics": "nonsense"}, None, id="malformed"),
    ],
)
def test_metric(metrics: Object, expected: tuple[str, bool] | None) -> None:
    """What is no number has no trend."""
    shown = Trends().add(KEY, reporting(1, **metrics))
    assert (shown and (shown["name"], shown["isEval"])) == expected


def test_bounds() -> None:
    """A trend spans all that was seen, in few values, and ends with the last one."""
    trends = Trends()
    shown: Any = None
    for number in range(1000):
        shown = trends.add(KEY, reporting(number, trainMetrics={"loss": str(number)}))
        assert shown is not None
        assert len(shown["trend"]) <= POINTS
        assert shown["trend"][-1] == number
    assert shown["trend"][0] == 0
    assert shown["trend"] == sorted(shown["trend"])


def test_another_train_job() -> None:
    """A TrainJob that is made again begins anew, and so does one with another metric."""
    trends = Trends()
    trends.add(KEY, reporting(1, trainMetrics={"a": "1"}))
    assert (trends.add(KEY, reporting(2, "another", trainMetrics={"a": "2"})) or {})["trend"] == [2]
    assert (trends.add(KEY, reporting(3, "another", trainMetrics={"loss": "3"})) or {})["trend"] == [3]
    trends.forget(KEY)
    assert (trends.add(KEY, reporting(4, trainMetrics={"a": "4"})) or {})["trend"] == [4]
