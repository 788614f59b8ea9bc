"""The curve of a metric on a TrainJob: what is kept, and what is made of annotations that others have written."""

from __future__ import annotations

import itertools
import json

import pytest

from trainer.api.metric_curve import (
    CURVE,
    CURVE_OF,
    LONGEST,
    MOST_POINTS,
    MetricCurve,
    Origin,
    Point,
    Reading,
    Unit,
    number_of,
    shows_final_curve,
)


def curve_of(*values: tuple[int, str]) -> MetricCurve:
    curve = MetricCurve("loss")
    for step, value in values:
        curve = curve.with_point(step, value)
    return curve


def pairs(curve: MetricCurve) -> list[tuple[int, str]]:
    return [(point.step, point.value) for point in curve.points]


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        pytest.param([], [], id="none"),
        pytest.param([(1, "0.5000"), (2, "5e-1")], [(1, "0.5000"), (2, "5e-1")], id="digits"),
        pytest.param([(0, "1")], [(0, "1")], id="step 0"),
        pytest.param([(5, "1"), (5, "2")], [(5, "2")], id="the last value of a step"),
        pytest.param([(1, "4"), (2, "3"), (3, "9"), (2, "1")], [(1, "4"), (2, "1")], id="back to a checkpoint"),
        pytest.param([(7, "4"), (8, "3"), (1, "1")], [(1, "1")], id="from the start"),
        pytest.param([(1, "4"), (2, "nan"), (3, "inf"), (4, "-Infinity"), (5, "")], [(1, "4")], id="not finite"),
        pytest.param([(1, "1e999")], [], id="overflow"),
        pytest.param([(1, "1" * LONGEST), (2, "1" * (LONGEST + 1))], [(1, "1" * LONGEST)], id="longest"),
    ],
)
def test_points(values: list[tuple[int, str]], kept: list[tuple[int, str]]) -> None:
    """Values stay digit by digit, by step; going back overwrites, and what is no number changes nothing."""
    assert pairs(curve_of(*values)) == kept


@pytest.mark.parametrize(
    ("text", "number"),
    [
        pytest.param("-0.25", -0.25, id="decimal"),
        pytest.param("+.5", 0.5, id="as C prints"),
        pytest.param("1.", 1.0, id="no digit after the point"),
        pytest.param("6.02E+23", 6.02e23, id="exponent"),
        *(pytest.param(text, None, id=repr(text)) for text in ("", " 1", "1_000", "٦", "0x10", "nan", "1e", "1,5")),
        pytest.param("1" * 1_000_000, None, id="huge"),
    ],
)
def test_number(text: str, number: float | None) -> None:
    """Numbers are those that trainings print, and not all that Python reads."""
    found = number_of(text)
    assert found == number if number is not None else found != found


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(range(1, 5001), id="all steps"),
        pytest.param(range(0, 500_000, 100), id="each hundredth"),
        pytest.param([*range(1, 1000), *range(10**9, 10**9 + 1000)], id="a gap"),
    ],
)
def test_thinned(steps: range | list[int]) -> None:
    """A long curve stays bounded and keeps first, last, least and greatest, with no hole in the rest."""
    steps = list(steps)
    values = {step: f"{index * 37 % 1009}.5" for index, step in enumerate(steps)}
    values[steps[1234]], values[steps[777]] = "-3", "5000"
    curve = MetricCurve("loss")
    for step in steps:
        curve = curve.with_point(step, values[step])
        assert len(curve.points) <= MOST_POINTS
    found = [point.step for point in curve.points]
    assert {steps[0], steps[-1], steps[1234], steps[777]} <= set(found)
    assert all(values[point.step] == point.value for point in curve.points)
    indices = [steps.index(step) for step in found]
    assert max(after - before for before, after in itertools.pairwise(indices)) < len(steps) / 8


def test_size() -> None:
    """The longest annotation takes a few kilobytes of the 256 that a TrainJob may have."""
    curve = MetricCurve("ä" * LONGEST)
    for step in range(2**31 - 1 - 1000, 2**31 - 1):
        curve = curve.with_point(step, f"0.{step:0{LONGEST - 2}}")
    assert len(curve.to_text().encode()) < 12_000


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        pytest.param(Origin(), Origin(is_eval=True), [(9, "2")], id="evaluation after training"),
        pytest.param(Origin(is_eval=True), Origin(), [(1, "1")], id="training after evaluation"),
        pytest.param(Origin(is_message=False, is_eval=True), Origin(), [(9, "2")], id="message after lines"),
        pytest.param(Origin(unit=Unit.EPOCHS), Origin(), [(9, "2")], id="steps after epochs"),
        pytest.param(Origin(unit=Unit.EPOCHS), Origin(unit=Unit.REPORTS), [(1, "1")], id="no steps after epochs"),
        pytest.param(Origin(), Origin(), [(1, "1"), (9, "2")], id="the same"),
    ],
)
def test_origins(before: Origin, after: Origin, kept: list[tuple[int, str]]) -> None:
    """A curve never mixes values that cannot be compared: those that say more replace the others."""
    curve = MetricCurve("loss").with_point(1, "1", origin=before).with_point(9, "2", origin=after)
    assert pairs(curve) == kept
    assert pairs(MetricCurve.of({CURVE: curve.to_text()}, "loss")) == kept


def test_text() -> None:
    """The annotation has all of a curve, and a reader in another language finds points and end by their names."""
    reading, origin = Reading("pod-uid", "2026-01-01T00:00:00.5Z"), Origin(False, True, Unit.EPOCHS)
    curve = MetricCurve("loss").with_point(3, "0.50", origin=origin, reading=reading)
    assert MetricCurve.of({CURVE: curve.to_text()}, "loss") == curve
    final = MetricCurve("loss", (Point(1, "2"),), is_final=True)
    assert json.loads(final.to_text()) == {"metric": "loss", "points": [[1, "2"]], "isFinal": True}
    assert MetricCurve.of({CURVE: final.to_text()}, "loss") == final
    assert not final.with_point(2, "1").is_final


HOSTILE = [
    pytest.param("", id="empty"),
    pytest.param("[" * 100_000, id="deep"),
    pytest.param("null", id="null"),
    pytest.param('{"metric": "loss", "points": 1}', id="points of another type"),
    pytest.param('{"metric": "loss", "points": [[1]]}', id="point without a value"),
    pytest.param('{"metric": "loss", "points": [[1, 2]]}', id="value of another type"),
    pytest.param('{"metric": "loss", "points": [[-1, "2"]]}', id="negative step"),
    pytest.param(f'{{"metric": "loss", "points": [[1{"0" * 5000}, "2"]]}}', id="huge step"),
    pytest.param('{"metric": "loss", "points": [[1, "NaN"]]}', id="NaN"),
    pytest.param(f'{{"metric": "loss", "points": [[1, "{"9" * 100_000}"]]}}', id="huge value"),
    pytest.param('{"metric": "loss", "points": [[2, "1"], [1, "1"]]}', id="out of order"),
    pytest.param('{"metric": "loss", "points": [[1, "1"], [1, "1"]]}', id="twice"),
    pytest.param('{"metric": "loss", "points": [[1, "1"]], "unit": "furlongs"}', id="unit"),
    pytest.param('{"metric": "accuracy", "points": [[1, "1"]], "isFinal": true}', id="another metric"),
    pytest.param('{"metric": "loss", "points": [[1, "1"]], "isFinal": "yes"}', id="end of another type"),
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile(text: str) -> None:
    """What cannot be read is no curve, and none that has ended."""
    annotations = {CURVE_OF: "loss", CURVE: text}
    assert MetricCurve.of(annotations, "loss") == MetricCurve("loss")
    assert not shows_final_curve(annotations)


def test_more_points_than_are_kept() -> None:
    """A longer curve, such as of a later version, is thinned out."""
    points = [[step, f"{step % 7}"] for step in range(20_000)]
    curve = MetricCurve.of({CURVE: json.dumps({"metric": "loss", "points": points})}, "loss")
    assert len(curve.points) <= MOST_POINTS
    assert curve.points[-1].step == 19_999


def test_shows_final_curve() -> None:
    """Only the curve of the metric that is asked for counts."""
    final = MetricCurve("loss", is_final=True).to_text()
    assert shows_final_curve({CURVE_OF: "loss", CURVE: final})
    assert not shows_final_curve({CURVE_OF: "accuracy", CURVE: final})
    assert not shows_final_curve({CURVE: final})
    assert not shows_final_curve({CURVE_OF: "loss"})
