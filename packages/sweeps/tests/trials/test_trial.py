"""What a TrainJob says about its trial."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from packages.sweeps.tests.jobs import curve_text, trial_object
from trainer.api.metric_curve import MetricCurve, Point
from trainer.api.optimization import PRUNED
from trainer_sweeps.api.optimizationjob import Objective, TrialState
from trainer_sweeps.trials.trial import PATIENCE, Trial, best

NOW = datetime(2026, 1, 1, tzinfo=UTC)
POINTS = ((1, "0.9"), (2, "0.25"), (3, "0.50"))


@pytest.mark.parametrize(
    ("train_job", "state", "value", "message"),
    [
        pytest.param({}, "Running", None, None, id="new"),
        pytest.param({"curve": curve_text(*POINTS)}, "Running", "0.50", None, id="running"),
        pytest.param({"end": "Complete", "curve": curve_text(*POINTS)}, "Running", "0.50", None, id="log-not-read-yet"),
        pytest.param(
            {"end": "Complete", "curve": curve_text(*POINTS, is_final=True)}, "Succeeded", "0.50", None, id="complete"
        ),
        pytest.param(
            {"end": "Complete", "ended": "2025-12-31T23:58:00Z", "metrics": {"evalMetrics": {"loss": "0.3"}}},
            "Succeeded",
            "0.3",
            None,
            id="no-curve-evaluation",
        ),
        pytest.param(
            {
                "end": "Complete",
                "curve": curve_text(is_final=True),
                "metrics": {"evalMetrics": {"other": "1"}, "trainMetrics": {"loss": "0.4"}},
            },
            "Succeeded",
            "0.4",
            None,
            id="no-curve-training",
        ),
        pytest.param(
            {"end": "Complete", "curve": curve_text(is_final=True)},
            "Failed",
            None,
            "it is complete and has not reported the metric loss, nor any other",
            id="no-value",
        ),
        pytest.param(
            {
                "end": "Complete",
                "curve": curve_text(is_final=True),
                "metrics": {
                    "evalMetrics": {"val_loss": "1", "acc": "1"},
                    "trainMetrics": {"acc": "1"} | {f"m{number}": "1" for number in range(8)},
                },
            },
            "Failed",
            None,
            "it is complete and has not reported the metric loss, but val_loss, acc, m0, m1, m2, m3, m4, m5 and 2 more",
            id="other-metrics",
        ),
        pytest.param(
            {"end": "Complete", "curve": curve_text(is_final=True), "metrics": {"trainMetrics": {"loss": "nan"}}},
            "Failed",
            None,
            "it is complete, and its metric loss is nan",
            id="not-a-number",
        ),
        pytest.param(
            {"end": "Complete", "curve": curve_text((1, "1"), metric="acc", is_final=True)},
            "Running",
            None,
            None,
            id="curve-of-another-metric",
        ),
        pytest.param(
            {"end": "Failed", "message": "ValueError: x\nmore\nlines", "curve": curve_text(*POINTS)},
            "Failed",
            None,
            "ValueError: x",
            id="failed",
        ),
        pytest.param(
            {"annotations": {PRUNED: "too slow"}, "curve": curve_text(*POINTS)},
            "Pruned",
            "0.50",
            "too slow",
            id="pruned",
        ),
        pytest.param(
            {"annotations": {PRUNED: "too slow"}, "end": "Complete", "curve": curve_text(*POINTS, is_final=True)},
            "Pruned",
            "0.50",
            "too slow",
            id="resumed-by-hand-after-it-was-pruned",
        ),
    ],
)
def test_state_and_value(train_job: dict[str, Any], state: str, value: str | None, message: str | None) -> None:
    """A trial is what its TrainJob says, and has succeeded only with a value."""
    trial = Trial.of(trial_object(**train_job), Objective(metric="loss"), NOW)
    assert (trial.state, trial.value, trial.message) == (state, value, message)


@pytest.mark.parametrize(
    ("aggregate", "value"), [pytest.param("Last", "0.50"), pytest.param("Min", "0.25"), pytest.param("Max", "0.9")]
)
def test_aggregates(aggregate: str, value: str) -> None:
    """The value is the last, least or greatest of the curve, digit by digit."""
    objective = Objective.from_object({"metric": "loss", "aggregate": aggregate})
    train_job = trial_object(end="Complete", curve=curve_text(*POINTS, is_final=True))
    assert Trial.of(train_job, objective, NOW).value == value


def test_patience_ends() -> None:
    """A trial without a complete curve is judged a minute after its end, by what there is."""
    train_job = trial_object(end="Complete", curve=curve_text(*POINTS))
    objective = Objective(metric="loss")
    assert Trial.of(train_job, objective, NOW + PATIENCE - timedelta(seconds=1)).state is TrialState.RUNNING
    assert Trial.of(train_job, objective, NOW + PATIENCE).value == "0.50"


def test_all_that_the_status_keeps_comes_back() -> None:
    """An entry of the status makes the trial that it was made of, without its curve."""
    objective = Objective(metric="loss")
    pruned = trial_object(
        number=12, assignment={"b": "2", "a": "1"}, annotations={PRUNED: "p" * 600}, curve=curve_text(*POINTS)
    )
    trial = Trial.of(pruned, objective, NOW)
    record = trial.record(["a", "b"])
    assert record.parameter_values == ["1", "2"]
    assert record.message is not None
    assert len(record.message) == 512
    again = Trial.of_record("demo", record, ["a", "b"], objective)
    assert (again.number, again.name, again.state, again.assignment) == (
        12,
        "demo-trial-12",
        "Pruned",
        {"a": "1", "b": "2"},
    )
    assert again.curve == MetricCurve("loss", (Point(3, "0.50"),), is_final=True)
    assert again.record(["a", "b"]) == record


@pytest.mark.parametrize(
    ("direction", "number"), [pytest.param("Minimize", 2, id="least"), pytest.param("Maximize", 1, id="greatest")]
)
def test_best(direction: str, number: int) -> None:
    """The best trial is the first of those with the best value; what was pruned or runs does not count."""
    objective = Objective.from_object({"metric": "loss", "direction": direction})
    complete = [
        trial_object(number=index, end="Complete", curve=curve_text((1, value), is_final=True))
        for index, value in ((3, "1e-1"), (2, "0.1"), (1, "0.9"))
    ]
    others = [
        trial_object(number=4, curve=curve_text((1, "-1"))),
        trial_object(number=5, curve=curve_text((1, "5")), annotations={PRUNED: "p"}),
    ]
    found = best((Trial.of(each, objective, NOW) for each in (*complete, *others)), objective)
    assert found is not None
    assert found.number == number
    assert best([], objective) is None
