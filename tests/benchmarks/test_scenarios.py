from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from benchmarks.runner import Plan, run_one, serving
from benchmarks.scenarios import SCENARIOS
from benchmarks.scenarios.scenario import Size
from benchmarks.subjects import SUBJECTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.scenarios.scenario import Scenario
    from benchmarks.subjects.subject import Subject

TINY = Plan(SCENARIOS, Size(objects=20, seconds=0.1, repetitions=1))


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The API server's stand-in, in a process of its own."""
    with serving() as url:
        yield url


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_each_scenario_measures_each_subject(server: str, scenario: Scenario, subject: Subject) -> None:
    """The first variant that applies to a subject yields finite numbers, of which none but memory is negative."""
    variant = next(variant for variant in scenario.variants if not subject.lacks.keys() & variant.needs)
    result = run_one(TINY, server, scenario, variant, subject)
    assert result.error == ""
    assert result.objects == 20
    names = [found.name for found in result.measurements]
    assert names
    assert len(set(names)) == len(names)
    for found in result.measurements:
        assert math.isfinite(found.value)
        assert found.value >= 0 or "RSS" in found.name


def test_what_a_subject_lacks_is_reported_with_the_reason(server: str) -> None:
    """A variant that a subject cannot do is not run, and the result says why."""
    [scenario] = [scenario for scenario in SCENARIOS if scenario.name == "reconciles"]
    [subject] = [subject for subject in SUBJECTS if subject.name == "kopf"]
    result = run_one(TINY, server, scenario, scenario.variants[0], subject)
    assert result.not_applicable == "work comes from watch events only"
    assert result.measurements == []


def test_a_trial_that_fails_is_reported_with_its_last_words() -> None:
    """Without an API server a trial yields an error, not an exception."""
    scenario = next(scenario for scenario in SCENARIOS if scenario.name == "latency")
    result = run_one(TINY, "http://127.0.0.1:1", scenario, scenario.variants[0], SUBJECTS[0])
    assert "exit code 1" in result.error
    assert "127.0.0.1" in result.error
