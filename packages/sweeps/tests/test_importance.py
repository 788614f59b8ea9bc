from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from packages.sweeps.tests.search.sweeps import LAYERS, LEARNING_RATE, OPTIMIZER, TRAINING, choice, sweep
from trainer.kube.objects import Object
from trainer_sweeps.api.optimizationjob import OptimizationJobSpec
from trainer_sweeps.importance import importances
from trainer_sweeps.search import suggestion

pytestmark = pytest.mark.skipif(importlib.util.find_spec("sklearn") is None, reason="scikit-learn is missing")


def spec_of(*parameters: Mapping[str, Any]) -> Object:
    return sweep(*parameters).model_dump(by_alias=True, exclude_none=True, mode="json")


def ended(spec: Object, count: int, value: Callable[[Mapping[str, str]], float]) -> list[Object]:
    """The trials of a random search, as they stand in the status."""
    trials: list[Object] = []
    for number in range(1, count + 1):
        assignment = suggestion(OptimizationJobSpec.from_object(spec), 1, [], number)
        values = [*assignment.values()]
        trials.append(
            {"number": number, "state": "Succeeded", "value": repr(value(assignment)), "parameterValues": values}
        )
    return trials


@pytest.mark.parametrize(
    ("value", "first"),
    [
        pytest.param(lambda a: float(a["lr"]), "lr", id="a-number"),
        pytest.param(lambda a: abs(int(a["layers"]) - 4) + float(a["lr"]), "layers", id="an-integer"),
        pytest.param(lambda a: {"sgd": 5.0, "adam": 1.0, "lion": 4.0}[a["optimizer"]], "optimizer", id="a-choice"),
        pytest.param(lambda a: 1e300 if a["layers"] == "7" else float(a["lr"]), "lr", id="some-diverged"),
    ],
)
def test_the_parameter_on_which_the_value_depends_comes_first(
    value: Callable[[Mapping[str, str]], float], first: str
) -> None:
    """Shares sum to 1, the greatest first, and are the same each time."""
    spec = spec_of(*TRAINING)
    shares = importances(spec, ended(spec, 60, value))
    assert shares is not None
    assert shares.keys() == {"lr", "layers", "optimizer"}
    assert next(iter(shares)) == first
    assert shares[first] > 0.5
    assert sum(shares.values()) == pytest.approx(1)
    assert importances(spec, [*reversed(ended(spec, 60, value))]) == shares


SPEC = spec_of(LEARNING_RATE, OPTIMIZER)
TRIALS = ended(SPEC, 12, lambda a: float(a["lr"]))


@pytest.mark.parametrize(
    ("spec", "trials"),
    [
        pytest.param(SPEC, [], id="none"),
        pytest.param(SPEC, TRIALS[:4], id="few"),
        pytest.param(SPEC, [trial | {"state": "Pruned"} for trial in TRIALS], id="all-pruned"),
        pytest.param(SPEC, [trial | {"value": "0.5"} for trial in TRIALS], id="all-alike"),
        pytest.param(SPEC, [trial | {"value": "nan"} for trial in TRIALS], id="no-values"),
        pytest.param(SPEC, [trial | {"parameterValues": ["0.1"]} for trial in TRIALS], id="values-are-missing"),
        pytest.param(SPEC, [{"number": "one"}] * 9, id="not-trials"),
        pytest.param({}, TRIALS, id="not-a-spec"),
        pytest.param(spec_of(choice("lr", "1")), TRIALS, id="nothing-to-choose"),
    ],
)
def test_too_little_says_nothing(spec: Object, trials: list[Object]) -> None:
    """Without at least five trials whose values differ there is no importance."""
    assert importances(spec, trials) == {}


def test_without_scikit_learn_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller has a measure of its own then."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert importances(SPEC, TRIALS) is None


def test_a_hundred_parameters_with_a_hundred_choices() -> None:
    """The largest space costs one column for each parameter."""
    spec = spec_of(LAYERS, *(choice(f"p{number}", *map(str, range(100))) for number in range(99)))
    shares = importances(spec, ended(spec, 100, lambda a: int(a["layers"]) ** 2))
    assert shares is not None
    assert next(iter(shares)) == "layers"
