from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packages.sweeps.tests.search.sweeps import sweep
from trainer_sweeps.api.optimizationjob import OptimizationJobSpec, TrialState
from trainer_sweeps.search import PastTrial, prune_reason

Curve = Sequence[tuple[int, float]]


def pruning(kind: str, settings: Mapping[str, int], objective: Mapping[str, Any] | None = None) -> OptimizationJobSpec:
    return sweep(objective=objective or {}, pruneAlgorithm={kind: dict(settings)})


def trial(number: int, curve: Curve, state: TrialState = TrialState.RUNNING) -> PastTrial:
    return PastTrial(number, state, {}, None, tuple(curve))


def flat(value: float, *steps: int) -> Curve:
    return [(step, value) for step in steps]


def decide(spec: OptimizationJobSpec, curve: Curve, others: Sequence[Curve], state: TrialState) -> str | None:
    """The decision on a running trial; the others, which began before it, have the state."""
    return prune_reason(spec, trial(99, curve), [trial(number, other, state) for number, other in enumerate(others)])


MAXIMIZE = {"metric": "accuracy", "direction": "Maximize"}


@pytest.mark.parametrize(
    ("settings", "curve", "others", "reason"),
    [
        pytest.param(
            {"startupTrials": 3},
            [(1, 5.0), (27, 0.91), (30, 1.5)],
            [flat(0.5, 1, 30), flat(0.6, 1, 30), flat(0.7, 2, 29, 31)],
            "The best loss up to step 30, 0.91, is worse than the median 0.6 of 3 trials",
            id="its-best-value-counts",
        ),
        pytest.param({"startupTrials": 3}, [(3, 0.6)], [flat(0.5, 3), flat(0.6, 3), flat(0.7, 3)], None, id="median"),
        pytest.param({"startupTrials": 4}, [(3, 9.0)], [flat(0.5, 3)] * 3, None, id="startup-trials"),
        pytest.param({"startupTrials": 1}, [(3, 9.0)], [], None, id="alone"),
        pytest.param({"startupTrials": 1}, [(3, 9.0)], [[]], None, id="no-other-curve"),
        pytest.param({"startupTrials": 1}, [(9, 9.0)], [flat(0.5, 1, 8)], None, id="none-went-so-far"),
        pytest.param({"startupTrials": 1}, [(2, 9.0)], [flat(0.5, 3, 8)], None, id="none-had-a-value-by-then"),
        pytest.param({"startupTrials": 1, "warmupSteps": 10}, [(9, 9.0)], [flat(0.5, 1, 99)], None, id="warms-up"),
        pytest.param(
            {"startupTrials": 1, "warmupSteps": 10},
            [(10, 9.0)],
            [flat(0.5, 1, 99)],
            "The best loss up to step 10, 9, is worse than the median 0.5 of 1 trial",
            id="is-warm",
        ),
        pytest.param(
            {"startupTrials": 1, "warmupSteps": 5, "intervalSteps": 10},
            [(4, 9.0), (15, 0.4), (24, 0.6)],
            [[(1, 1.0), (14, 0.5), (20, 0.3), (30, 0.3)]],
            None,
            id="was-good-at-the-last-decision",
        ),
        pytest.param(
            {"startupTrials": 1, "warmupSteps": 5, "intervalSteps": 10},
            [(4, 9.0), (15, 0.4), (27, 0.4)],
            [[(1, 1.0), (14, 0.5), (20, 0.3), (30, 0.3)]],
            "The best loss up to step 27, 0.4, is worse than the median 0.3 of 1 trial",
            id="decision-waits-for-a-value",
        ),
        pytest.param({"startupTrials": 1}, [(3, 0.1), (4, math.nan)], [flat(0.5, 4)], None, id="has-been-good"),
        pytest.param(
            {"startupTrials": 1},
            [(3, math.nan)],
            [flat(0.5, 3)],
            "The best loss up to step 3, nan, is worse than the median 0.5 of 1 trial",
            id="nan",
        ),
        pytest.param({"startupTrials": 1}, [], [flat(0.5, 3)], None, id="nothing-reported"),
    ],
)
def test_median(settings: Mapping[str, int], curve: Curve, others: Sequence[Curve], reason: str | None) -> None:
    """A trial goes on while its best value is not worse than the median of those that succeeded, at the same step."""
    assert decide(pruning("median", settings), curve, others, TrialState.SUCCEEDED) == reason


@pytest.mark.parametrize("state", [TrialState.RUNNING, TrialState.FAILED, TrialState.PRUNED])
def test_median_is_that_of_trials_that_succeeded(state: TrialState) -> None:
    """Trials that did not get to the end are no measure."""
    assert decide(pruning("median", {"startupTrials": 1}), flat(9.0, 3), [flat(0.5, 3)], state) is None


@pytest.mark.parametrize(
    ("settings", "curve", "others", "reason"),
    [
        pytest.param({}, [(1, 9.0)], [], None, id="alone"),
        pytest.param({}, [(1, 0.5)], [flat(0.5, 1)] * 8, None, id="all-alike"),
        pytest.param({}, [(1, 0.6)], [flat(0.5, 1)], "loss 0.6 at step 1 is not the best of 2 trials", id="two"),
        pytest.param({}, [(1, 0.5)], [flat(0.6, 1)], None, id="best-of-two"),
        pytest.param(
            {},
            [(1, 2.0), (27, 0.91)],
            [flat(value / 10, 1, 27) for value in range(1, 9)],
            "loss 0.91 at step 27 is not among the best 3 of 9 trials",
            id="not-among-the-best-third",
        ),
        pytest.param({}, [(27, 0.3)], [flat(value / 10, 27) for value in range(1, 9)], None, id="just-in-the-third"),
        pytest.param({}, [(1, 9.0), (3, 0.1)], [flat(0.2, 1, 3), flat(0.1, 1)], None, id="passed-rungs-are-passed"),
        pytest.param(
            {},
            [(26, 0.5)],
            [flat(0.1, 9, 27), flat(0.6, 9), flat(0.6, 9)],
            "loss 0.5 at step 9 is not the best of 4 trials",
            id="between",
        ),
        pytest.param({"warmupSteps": 5}, [(4, 9.0)], [flat(0.1, 99)], None, id="warms-up"),
        pytest.param({"warmupSteps": 5}, [(14, 9.0)], [flat(0.1, 4)] * 9, None, id="others-below-the-rung"),
        pytest.param(
            {"reductionFactor": 2},
            [(2, 0.5)],
            [flat(0.1, 1, 2), flat(0.2, 1, 2), flat(0.9, 1, 2)],
            "loss 0.5 at step 2 is not among the best 2 of 4 trials",
            id="half",
        ),
        pytest.param(
            {"intervalSteps": 10},
            [(1, 9.0), (10, 9.0)],
            [[(1, 10.0), (3, 0.1), (10, 0.1)]],
            None,
            id="no-rung-within-the-interval",
        ),
        pytest.param(
            {"intervalSteps": 10},
            [(1, 9.0), (11, 9.0)],
            [[(1, 10.0), (3, 0.1), (11, 0.1)]],
            "loss 9 at step 11 is not the best of 2 trials",
            id="next-rung-after-the-interval",
        ),
        pytest.param(
            {},
            [(27, 0.61)],
            [[(17, 0.8), (37, 0.4)]],
            "loss 0.61 at step 27 is not the best of 2 trials",
            id="between-points",
        ),
        pytest.param({}, [(27, 0.59)], [[(17, 0.8), (37, 0.4)]], None, id="better-than-between-points"),
        pytest.param(
            {}, [(50, 0.5)], [[(50, 0.4)]], "loss 0.5 at step 27 is not the best of 2 trials", id="first-report"
        ),
        pytest.param({}, [(1, math.nan)], [flat(0.1, 1)], "loss nan at step 1 is not the best of 2 trials", id="nan"),
    ],
)
@pytest.mark.parametrize("state", TrialState)
def test_asha(
    settings: Mapping[str, int], curve: Curve, others: Sequence[Curve], reason: str | None, state: TrialState
) -> None:
    """A trial goes on while it is among the best at its last rung, of those that began before it and reached it too."""
    assert decide(pruning("asha", settings), curve, others, state) == reason


@pytest.mark.parametrize(
    ("objective", "curve", "other", "is_pruned"),
    [
        pytest.param({}, [(1, 0.1), (2, 0.5), (3, 0.5)], [(1, 0.4), (3, 0.4)], True, id="last"),
        pytest.param({"aggregate": "Min"}, [(1, 0.1), (2, 0.5), (3, 0.5)], [(1, 0.4), (3, 0.4)], False, id="min"),
        pytest.param({"aggregate": "Max"}, [(1, 0.5), (3, 0.1)], [(1, 0.4), (3, 0.4)], True, id="max"),
        pytest.param(MAXIMIZE, [(3, 0.5)], [(3, 0.4)], False, id="maximize"),
        pytest.param(MAXIMIZE, [(3, 0.4)], [(3, 0.5)], True, id="maximize-worse"),
        pytest.param(MAXIMIZE, [(3, math.nan)], [(3, 0.1)], True, id="maximize-nan"),
    ],
)
def test_asha_compares_what_the_objective_makes_of_the_curves(
    objective: Mapping[str, Any], curve: Curve, other: Curve, is_pruned: bool
) -> None:
    """Direction and aggregate are those of the objective."""
    reason = decide(pruning("asha", {}, objective), curve, [other], TrialState.RUNNING)
    assert (reason is not None) == is_pruned


def test_without_pruning_all_go_on() -> None:
    """A sweep without pruneAlgorithm stops none."""
    assert decide(sweep(), flat(9.0, 1), [flat(0.1, 1)] * 9, TrialState.SUCCEEDED) is None


def test_asha_decides_as_if_a_trial_were_the_last() -> None:
    """What begins later changes no decision, so that the same trials are pruned however often one looks."""
    spec, later = pruning("asha", {}), [trial(number, flat(0.1, 1, 3)) for number in range(5, 9)]
    assert prune_reason(spec, trial(4, flat(0.5, 1, 3)), later) is None
    assert prune_reason(spec, trial(9, flat(0.5, 1, 3)), later) == "loss 0.5 at step 3 is not the best of 5 trials"


def test_a_trial_is_not_its_own_rival() -> None:
    """The list of all trials can be given, with the judged one in it."""
    trials = [trial(number, flat(number, 9)) for number in range(1, 4)]
    spec = pruning("asha", {})
    assert [prune_reason(spec, judged, trials) is None for judged in trials] == [True, False, False]


_PRUNINGS = st.one_of(
    st.builds(
        lambda warmup, factor, interval: pruning(
            "asha", {"warmupSteps": warmup, "reductionFactor": factor, "intervalSteps": interval}
        ),
        st.integers(1, 20),
        st.integers(2, 5),
        st.integers(1, 20),
    ),
    st.builds(
        lambda startup, warmup, interval: pruning(
            "median", {"startupTrials": startup, "warmupSteps": warmup, "intervalSteps": interval}
        ),
        st.integers(1, 3),
        st.integers(0, 20),
        st.integers(1, 20),
    ),
)
_STEPS = st.lists(st.sets(st.integers(0, 60), min_size=1), min_size=1, max_size=12)
_STATES = st.sampled_from(TrialState)


@given(spec=_PRUNINGS, steps=_STEPS, states=st.lists(_STATES, min_size=12, max_size=12))
def test_the_best_of_curves_that_never_cross_goes_on(
    spec: OptimizationJobSpec, steps: list[set[int]], states: list[TrialState]
) -> None:
    """Losses that fall side by side, reported at any steps: the least one is never pruned."""
    curves = [[(step, place - step / 100) for step in sorted({0, *reported})] for place, reported in enumerate(steps)]
    others = [trial(number, curve, state) for number, (curve, state) in enumerate(zip(curves, states, strict=False))]
    assert prune_reason(spec, trial(0, curves[0]), others) is None


@given(
    spec=_PRUNINGS,
    curves=st.lists(
        st.dictionaries(st.integers(0, 60), st.floats(0, 1), min_size=1).map(lambda curve: sorted(curve.items())),
        min_size=1,
        max_size=12,
    ),
)
def test_never_are_all_pruned(spec: OptimizationJobSpec, curves: list[Curve]) -> None:
    """Of trials that run side by side one goes on, however their curves cross."""
    trials = [trial(number, curve) for number, curve in enumerate(curves)]
    assert any(prune_reason(spec, judged, trials) is None for judged in trials)
