"""How much parameters have to do with the value."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from packages.dashboard.tests.sweeps import record, sweep
from trainer.kube.objects import Object
from trainer_dashboard.sweep import importance
from trainer_dashboard.sweep.importance import importance_of, ranks

COUNT = 24
SPEC = sweep()["spec"]


def trials(value: Callable[[int], object], count: int = COUNT) -> list[Object]:
    """The rate rises with the number, layers go round in eight, and the optimizer is every third."""
    return [
        record(
            number,
            [str(10.0 ** (number / 6 - 5)), str(number % 8 + 1), "sgd" if number % 3 else "adamw"],
            value=str(value(number)),
        )
        for number in range(1, count + 1)
    ]


@pytest.fixture(autouse=True)
def nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other distribution is asked, unless a test announces one."""
    monkeypatch.setattr(importance, "entry_points", lambda group: ())


@pytest.mark.parametrize(
    ("value", "first"),
    [
        pytest.param(lambda number: number**3, "lr", id="rises"),
        pytest.param(lambda number: -number, "lr", id="falls"),
        pytest.param(lambda number: number % 8, "layers", id="other"),
        pytest.param(lambda number: (number % 3 > 0) * 10 + number % 2, "optimizer", id="categorical"),
    ],
)
def test_correlation(value: Callable[[int], float], first: str) -> None:
    """The parameter that the value follows is the most important one, whichever direction."""
    found = importance_of(SPEC, trials(value))
    assert found["method"] == "correlation"
    assert max(found["of"], key=found["of"].__getitem__) == first
    assert all(0 <= each <= 1 for each in found["of"].values())
    assert found["of"][first] > 0.8


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(trials(float, importance.LEAST_TRIALS - 1), id="few"),
        pytest.param([each | {"state": "Pruned"} for each in trials(float)], id="pruned"),
        pytest.param(trials(lambda _: math.nan), id="no-numbers"),
    ],
)
def test_nothing_can_be_said(given: list[Object]) -> None:
    """Few trials with a value, and those that were stopped, say nothing."""
    assert importance_of(SPEC, given) == {"method": "", "least": importance.LEAST_TRIALS, "of": {}}


def test_equal_values() -> None:
    """Where all values are the same no parameter matters, nor does one that is the same in all."""
    assert set(importance_of(SPEC, trials(lambda _: 1))["of"].values()) == {0.0}
    same = [each | {"parameterValues": ["1", "1", "sgd"]} for each in trials(float)]
    assert set(importance_of(SPEC, same)["of"].values()) == {0.0}


def test_chance() -> None:
    """A categorical parameter with a choice of its own for each trial explains nothing."""
    given = [each | {"parameterValues": ["1", "1", str(each["number"])]} for each in trials(float)]
    assert importance_of(SPEC, given)["of"]["optimizer"] == 0


def test_ranks() -> None:
    """Equal values share the mean of their ranks."""
    assert ranks([3, 1, 3, 2]) == [3.5, 1, 3.5, 2]


def provider(spec: Object, given: Sequence[Object]) -> dict[str, float] | None:
    """What a distribution announces."""
    return {"lr": 0.75, "layers": 0.25, "optimizer": 0.0} if spec and len(given) > 6 else None


def failing(*_: Any) -> None:
    """A distribution that cannot."""
    raise ValueError("no")


@pytest.mark.parametrize(
    ("names", "count", "method"),
    [
        pytest.param(["provider"], COUNT, "share", id="asked"),
        pytest.param(["failing", "provider"], COUNT, "share", id="next"),
        pytest.param(["provider"], 6, "correlation", id="cannot-tell"),
        pytest.param(["failing", "missing"], COUNT, "correlation", id="none-can"),
    ],
)
def test_others(monkeypatch: pytest.MonkeyPatch, names: list[str], count: int, method: str) -> None:
    """Another distribution is asked first, and what it cannot tell is told without it."""
    points = [EntryPoint(name, f"{__name__}:{name}", importance.GROUP) for name in names]
    monkeypatch.setattr(importance, "entry_points", lambda group: points)
    assert importance_of(SPEC, trials(float, count))["method"] == method


def test_bounds() -> None:
    """100 trials of 100 parameters are told at once."""
    spec = sweep(parameters=[{"name": f"p{each}"} for each in range(150)])["spec"]
    given = [
        record(number, [str(number * each % 97) for each in range(150)], value=str(number)) for number in range(200)
    ]
    assert len(importance_of(spec, given)["of"]) == 100
