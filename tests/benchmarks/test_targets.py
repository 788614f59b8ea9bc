from __future__ import annotations

import pytest

from benchmarks.measurement import Measurement, Unit
from benchmarks.results import Machine, Results, TrialResult
from benchmarks.scenarios import SCENARIOS
from benchmarks.targets import TARGETS, Target

MACHINE = Machine("cpu", 2, 1, 0.0, "6", "3.11", {})


def _results(**numbers: float) -> Results:
    """One trial of the scenario for each subject."""
    return Results(
        MACHINE,
        [
            TrialResult(
                "load", "whole", subject.replace("_kube", ".kube"), 1, [Measurement("stall", value, Unit.SECONDS)]
            )
            for subject, value in numbers.items()
        ],
    )


@pytest.mark.parametrize(
    ("target", "results", "measured", "is_met"),
    [
        pytest.param(
            Target("t", "load", ("whole",), "stall", at_most=2), _results(trainer_kube=2), 2.0, True, id="at-most"
        ),
        pytest.param(
            Target("t", "load", ("whole",), "stall", at_most=2), _results(trainer_kube=2.1), 2.1, False, id="too-much"
        ),
        pytest.param(
            Target("t", "load", ("whole",), "stall", at_least=20, against="kopf"),
            _results(trainer_kube=2, kopf=50),
            25.0,
            True,
            id="ratio",
        ),
        pytest.param(
            Target("t", "load", ("whole",), "stall", at_least=30, against="kopf"),
            _results(trainer_kube=2, kopf=50),
            25.0,
            False,
            id="ratio-too-low",
        ),
        pytest.param(Target("t", "load", ("whole",), "stall", at_most=2), _results(kopf=1), None, False, id="not-run"),
        pytest.param(
            Target("t", "load", ("whole", "pages"), "stall", at_most=2),
            _results(trainer_kube=1),
            None,
            False,
            id="run-in-part",
        ),
    ],
)
def test_target(target: Target, results: Results, measured: float | None, is_met: bool) -> None:
    """A target is met when the worst of its numbers is known and within the bound."""
    result = target.check(results)
    assert (result.measured, result.is_met) == (measured, is_met)


def test_targets_name_variants_that_exist() -> None:
    """Otherwise a target would silently never be checked."""
    known = {(scenario.name, variant.name) for scenario in SCENARIOS for variant in scenario.variants}
    assert {(target.scenario, variant) for target in TARGETS for variant in target.variants} <= known
