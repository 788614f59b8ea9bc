from __future__ import annotations

import importlib.util
import math
import random
import statistics
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from packages.sweeps.tests.search.sweeps import LAYERS, LEARNING_RATE, OPTIMIZER, choice, history, interval, loss, sweep
from trainer.api.optimization import LONGEST_TEXT
from trainer_sweeps.api.optimizationjob import TrialState
from trainer_sweeps.search import AlgorithmUnavailableError, PastTrial, number_of_trials, seed_of, suggestion

_LACKS_TORCH = not (importlib.util.find_spec("torch") and importlib.util.find_spec("scipy"))
SEQUENTIAL = ["tpe", "cmaEs", pytest.param("gp", marks=pytest.mark.skipif(_LACKS_TORCH, reason="torch is missing"))]


def test_loads_no_library_before_an_algorithm_needs_it() -> None:
    """Importing the search costs neither memory nor time of numpy and Optuna, and random search never does."""
    program = (
        "import sys; from trainer_sweeps.search import suggestion; import trainer_sweeps.importance;"
        "from packages.sweeps.tests.search.sweeps import sweep; suggestion(sweep(), 1, [], 1);"
        "print(*{'numpy', 'optuna', 'cmaes', 'torch', 'sklearn'} & sys.modules.keys())"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == ""


@pytest.mark.parametrize(
    ("algorithm", "parameters", "trials"),
    [
        pytest.param({"random": {}}, [OPTIMIZER], 100, id="random-draws-as-many-as-it-may"),
        pytest.param({"grid": {}}, [OPTIMIZER], 3, id="grid-ends-with-its-combinations"),
        pytest.param({"grid": {}}, [choice(f"p{n}", *map(str, range(100))) for n in range(100)], 100, id="huge-grid"),
    ],
)
def test_number_of_trials(algorithm: Mapping[str, Any], parameters: list[Mapping[str, Any]], trials: int) -> None:
    """A sweep has numTrials, or the combinations of a smaller grid."""
    assert number_of_trials(sweep(*parameters, algorithm=algorithm)) == trials


@pytest.mark.parametrize(
    ("algorithm", "seed"),
    [
        pytest.param({"random": {"seed": -5}}, -5, id="random"),
        pytest.param({"tpe": {"seed": 0}}, 0, id="zero-is-a-seed"),
        pytest.param({"gp": {"seed": 2**63 - 1}}, 2**63 - 1, id="greatest"),
        pytest.param({"cmaEs": {}}, seed_of(sweep(), "a"), id="by-the-uid"),
    ],
)
def test_seed_is_that_of_the_algorithm_or_made_of_the_uid(algorithm: Mapping[str, Any], seed: int) -> None:
    """A seed is used as it is; without one sweeps of the same spec differ, and a sweep stays the same."""
    assert seed_of(sweep(algorithm=algorithm), "a") == seed != seed_of(sweep(), "b")


def test_grid_walks_the_last_parameter_first() -> None:
    """Each combination comes once, in order, and begins again after the last."""
    spec = sweep(choice("a", "x", "y"), choice("b", "1", "2", "3"), algorithm={"grid": {}})
    found = ["".join(suggestion(spec, 1, [], number).values()) for number in range(1, 8)]
    assert found == ["x1", "x2", "x3", "y1", "y2", "y3", "x1"]


def test_grid_of_any_size_is_never_laid_out() -> None:
    """A grid of 100^100 combinations gives its hundredth one at once."""
    spec = sweep(*(choice(f"p{n}", *map(str, range(100))) for n in range(100)), algorithm={"grid": {}})
    assert [*suggestion(spec, 1, [], 100).values()] == ["0"] * 99 + ["99"]


def test_random_trials_depend_on_seed_and_number_alone() -> None:
    """The same seed gives the same trials, whatever has happened; another gives others, all over the space."""
    spec = sweep()
    drawn = [suggestion(spec, 7, [], number) for number in range(1, 101)]
    assert drawn == [suggestion(spec, 7, history(spec, 5, 2, loss), number) for number in range(1, 101)]
    assert drawn != [suggestion(spec, 8, [], number) for number in range(1, 101)]
    assert {trial["layers"] for trial in drawn} == {str(layers) for layers in range(1, 13)}
    assert {trial["optimizer"] for trial in drawn} == {"sgd", "adam", "lion"}
    assert 30 < sum(float(trial["lr"]) < 1e-3 for trial in drawn) < 70, "half of the orders of magnitude"


@pytest.mark.parametrize("algorithm", SEQUENTIAL)
def test_the_same_history_gives_the_same_next_trial(algorithm: str) -> None:
    """Neither the order of the history nor numbers drawn elsewhere have an influence; seed, number and trials have."""
    spec = sweep(algorithm={algorithm: {"startupTrials": 5}})
    past = history(spec, 12, 2, loss)
    chosen = suggestion(spec, 7, past, 15)
    before = random.getstate()
    assert suggestion(spec, 7, [*reversed(past)], 15) == chosen
    assert random.getstate() == before
    assert suggestion(spec, 8, past, 15) != chosen
    assert suggestion(spec, 7, past, 16) != chosen
    assert suggestion(spec, 7, past[1:], 15) != chosen


@pytest.mark.parametrize("algorithm", SEQUENTIAL)
def test_shared_random_numbers_stay_as_they_are(algorithm: str) -> None:
    """A suggestion draws nothing from the generators of the process."""
    import numpy as np

    spec = sweep(algorithm={algorithm: {"startupTrials": 5}})
    np.random.seed(1)
    expected = np.random.RandomState(1).random_sample()
    suggestion(spec, 7, history(spec, 12, 2, loss), 15)
    assert np.random.random_sample() == expected


@pytest.mark.parametrize("algorithm", SEQUENTIAL)
def test_startup_trials_are_those_of_random_search(algorithm: str) -> None:
    """Until enough trials have ended with a value, running and failed ones not counted, trials are random."""
    spec, drawn = sweep(algorithm={algorithm: {"startupTrials": 6}}), suggestion(sweep(), 7, [], 20)
    past = history(spec, 6, 2, loss)
    failed = [PastTrial(number, TrialState.FAILED, past[0].assignment) for number in range(9, 20)]
    assert suggestion(spec, 7, past[1:] + failed, 20) == drawn
    assert suggestion(spec, 7, past + failed, 20) != drawn


@pytest.mark.parametrize("direction", ["Minimize", "Maximize"])
@pytest.mark.parametrize("algorithm", SEQUENTIAL)
def test_trials_come_nearer_to_what_was_good(algorithm: str, direction: str) -> None:
    """The last trials of a sweep are much better than the first, random ones, though trainings diverge."""
    sign = 1 if direction == "Minimize" else -1
    spec = sweep(interval("x", "-10", "10"), algorithm={algorithm: {}}, objective={"direction": direction})
    past: list[PastTrial] = []
    for number in range(1, 31):
        assignment = suggestion(spec, 1, past, number)
        distance = abs(float(assignment["x"]) - 6)
        past.append(PastTrial(number, TrialState.SUCCEEDED, assignment, sign * (distance if distance < 14 else 1e300)))
    distances = [abs(float(trial.assignment["x"]) - 6) for trial in past]
    assert statistics.median(distances[-10:]) < statistics.median(distances[:10]) / 2


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"lr": "0.01", "optimizer": "sgd"}, id="a-parameter-is-missing"),
        pytest.param({"lr": "fast", "layers": "3", "optimizer": "sgd"}, id="no-number"),
        pytest.param({"lr": "nan", "layers": "3", "optimizer": "sgd"}, id="nan"),
        pytest.param({"lr": "0.01", "layers": "-Infinity", "optimizer": "sgd"}, id="infinity"),
        pytest.param({"lr": "0.01", "layers": "3" * 5000, "optimizer": "sgd"}, id="long"),
        pytest.param({"lr": "0.01", "layers": "3", "optimizer": "rprop"}, id="no-choice"),
    ],
)
@pytest.mark.parametrize("state", [TrialState.RUNNING, TrialState.SUCCEEDED, TrialState.PRUNED])
def test_trials_that_do_not_fit_the_space_are_left_out(broken: Mapping[str, str], state: TrialState) -> None:
    """A trial whose assignment was edited is as if it were not there."""
    spec = sweep(algorithm={"tpe": {}})
    past = history(spec, 12, 2, loss)
    assert suggestion(spec, 7, [*past, PastTrial(15, state, broken, 0.5)], 16) == suggestion(spec, 7, past, 16)


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("state", [TrialState.SUCCEEDED, TrialState.PRUNED])
def test_trials_without_a_finite_value_are_left_out(value: float | None, state: TrialState) -> None:
    """A trial of which no number is known teaches nothing."""
    spec = sweep(algorithm={"tpe": {}})
    past = history(spec, 12, 2, loss)
    assert suggestion(spec, 7, [*past, PastTrial(15, state, past[0].assignment, value)], 16) == suggestion(
        spec, 7, past, 16
    )


@pytest.mark.parametrize("algorithm", SEQUENTIAL)
@pytest.mark.parametrize(
    ("edited", "nearest"),
    [
        pytest.param({"lr": "7", "layers": "99"}, {"lr": "1e-1", "layers": "12"}, id="too-great"),
        pytest.param({"lr": "-1e300", "layers": "1e-60"}, {"lr": "1e-5", "layers": "1"}, id="too-small"),
        pytest.param({"layers": "2.9", "unknown": "1"}, {"layers": "3"}, id="no-integer"),
    ],
)
def test_numbers_beyond_their_bounds_count_as_the_bounds(
    algorithm: str, edited: Mapping[str, str], nearest: Mapping[str, str]
) -> None:
    """A number that a user has edited counts as the nearest one of the space."""
    spec = sweep(LEARNING_RATE, LAYERS, algorithm={algorithm: {"startupTrials": 5}})
    past = history(spec, 12, 0, loss)
    chosen = [
        suggestion(spec, 7, [*past, PastTrial(13, TrialState.SUCCEEDED, {**past[0].assignment, **change}, 0.0)], 14)
        for change in (edited, nearest)
    ]
    assert chosen[0] == chosen[1]


@pytest.mark.parametrize(
    ("parameter", "algorithm", "words"),
    [
        pytest.param(
            interval("n", "0.2", "0.8", "Int"), "tpe", "parameter n has no value: there are no integers", id="int"
        ),
        pytest.param(
            interval("n", "1", "1e400", "Int"), "random", "integers of 64 bits from 1 to 1e400", id="huge-int"
        ),
        pytest.param(interval("n", "1", "1e999999999999", "Int"), "random", "integers of 64 bits", id="hostile-int"),
        pytest.param(interval("x", "1", "1e400"), "random", "there are no numbers from 1 to 1e400", id="huge-float"),
        pytest.param(interval("x", "2", "1"), "random", "there are no numbers from 2 to 1", id="wrong-order"),
        pytest.param(
            interval("x", "0", "1", log=True), "random", "there are no positive numbers from 0", id="log-of-0"
        ),
        pytest.param(interval("x", "1e-400", "1", log=True), "random", "no positive numbers from 1e-400", id="tiny"),
        pytest.param({"name": "x", "searchSpace": {}}, "random", "parameter x has no search space", id="none"),
        pytest.param(interval("x", "0", "1"), "grid", "x is none: list its values", id="grid-of-numbers"),
    ],
)
def test_spaces_without_values_are_refused(parameter: Mapping[str, Any], algorithm: str, words: str) -> None:
    """What admission would have refused is said, with the parameter and the remedy."""
    with pytest.raises(AlgorithmUnavailableError, match=words):
        suggestion(sweep(OPTIMIZER, parameter, algorithm={algorithm: {}}), 1, [], 1)


@pytest.mark.parametrize(
    ("parameter", "texts"),
    [
        pytest.param(interval("p", "1e2", "1.02e2", "Int"), {"100", "101", "102"}, id="integers-as-digits"),
        pytest.param(interval("p", "-0.5", "1.5", "Int"), {"0", "1"}, id="integers-between-fractions"),
        pytest.param(interval("p", "1", "3", "Int", log=True), {"1", "2", "3"}, id="log-integers"),
        pytest.param(interval("p", "7", "7", "Int"), {"7"}, id="one-integer"),
        pytest.param(interval("p", "0.25", "2.5e-1"), {"0.25"}, id="one-number"),
        pytest.param(choice("p", "", "a b", "ü"), {"", "a b", "ü"}, id="texts-as-they-are"),
    ],
)
@pytest.mark.parametrize("algorithm", ["random", "tpe", "cmaEs"])
def test_values_are_texts_of_the_space(parameter: Mapping[str, Any], texts: set[str], algorithm: str) -> None:
    """Every value that there is comes, and no other."""
    spec = sweep(parameter, LEARNING_RATE, algorithm={algorithm: {}})
    past = history(spec, 12, 0, lambda assignment: float(assignment["lr"]))
    for known in ([], past):
        assert {suggestion(spec, 3, known, number)["p"] for number in range(13, 80)} <= texts
    assert {suggestion(spec, 3, [], number)["p"] for number in range(1, 80)} == texts


_FLOATS = st.floats(allow_nan=False, allow_infinity=False)
_BOUNDS = st.one_of(
    st.tuples(_FLOATS, _FLOATS, st.just("Float"), st.booleans()),
    st.tuples(
        st.integers(-(2**63) + 1, 2**63 - 1), st.integers(-(2**63) + 1, 2**63 - 1), st.just("Int"), st.booleans()
    ),
).filter(lambda bounds: not bounds[3] or min(bounds[:2]) > 0)


@settings(max_examples=150, deadline=None)
@given(bounds=_BOUNDS, seed=st.integers(-(2**63), 2**63 - 1), algorithm=st.sampled_from(["random", "tpe", "cmaEs"]))
def test_numbers_stay_in_their_bounds_through_text(
    bounds: tuple[float, float, str, bool], seed: int, algorithm: str
) -> None:
    """What the program reads lies between the bounds, in at most 64 characters, with any bounds and any algorithm."""
    low, high = sorted(bounds[:2])
    spec = sweep(
        interval("p", repr(low), repr(high), bounds[2], log=bounds[3]),
        algorithm={algorithm: {"startupTrials": 1}} if algorithm != "random" else None,
    )
    past: list[PastTrial] = []
    for number in range(1, 4):
        text = suggestion(spec, seed, past, number)["p"]
        assert len(text) <= LONGEST_TEXT
        assert low <= (int(text) if bounds[2] == "Int" else float(text)) <= high
        past.append(PastTrial(number, TrialState.SUCCEEDED, {"p": text}, float(number)))


@pytest.mark.parametrize("algorithm", ["tpe", "cmaEs"])
def test_a_hundred_parameters_with_a_hundred_choices(algorithm: str) -> None:
    """The largest space and the longest history give a trial."""
    spec = sweep(*(choice(f"p{n}", *map(str, range(100))) for n in range(100)), algorithm={algorithm: {}})
    chosen = suggestion(spec, 1, history(spec, 95, 4, lambda assignment: float(assignment["p0"])), 100)
    assert len(chosen) == 100


def test_a_gaussian_process_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its libraries the message says how to install them."""
    monkeypatch.setitem(sys.modules, "scipy", None)
    spec = sweep(algorithm={"gp": {"startupTrials": 5}})
    with pytest.raises(AlgorithmUnavailableError, match=r"needs scipy.*pip install 'trainer-sweeps\[gp\]'"):
        suggestion(spec, 1, history(spec, 6, 0, loss), 7)


@pytest.mark.parametrize("algorithm", ["tpe", "cmaEs"])
def test_suggestions_of_several_threads_do_not_mix(algorithm: str) -> None:
    """The controller asks for several sweeps at once, and gets what it would get one after the other."""
    spec = sweep(algorithm={algorithm: {"startupTrials": 5}})
    past = history(spec, 8, 1, loss)
    seeds = range(4)
    with ThreadPoolExecutor(4) as threads:
        together = [*threads.map(lambda seed: suggestion(spec, seed, past, 10), seeds)]
    assert together == [suggestion(spec, seed, past, 10) for seed in seeds]


def test_studies_are_not_logged(capsys: pytest.CaptureFixture[str]) -> None:
    """Optuna says nothing about studies that live for one suggestion, and its level of logs stays."""
    import optuna

    before = optuna.logging.get_verbosity()
    spec = sweep(algorithm={"tpe": {}})
    suggestion(spec, 7, history(spec, 12, 2, loss), 15)
    assert "".join(capsys.readouterr()) == ""
    assert optuna.logging.get_verbosity() == before
