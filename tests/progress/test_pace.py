"""The pace of a training, the time that remains by it, and how that is said."""

from __future__ import annotations

import itertools
import random
import re
import tracemalloc
from collections.abc import Callable, Mapping
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.progress.pace import Pace, is_estimate, summarize

START = 1.8e9
HOUR, DAY = 3600.0, 86400.0


class Report(NamedTuple):
    """At this time, so much was done."""

    time: float
    done: float


class Training(NamedTuple):
    """What a simulated training reports, and when it ends."""

    reports: list[Report]
    end: float


def simulate(
    steps: int,
    seconds: Callable[[float], float],
    *,
    pause_every: int = 0,
    pause: float = 0,
    extra: Mapping[int, float] | None = None,
    digits: int = 9,
) -> Training:
    """A training whose step takes `seconds(share done)`, with pauses after some steps and extra time within others."""
    time, reports = START, [Report(START, 0.0)]
    for step in range(1, steps + 1):
        time += seconds(step / steps) + (extra or {}).get(step, 0)
        reports.append(Report(time, int(step / steps * 10**digits + 1e-6) / 10**digits))
        if pause_every and step % pause_every == 0 and step < steps:
            time += pause
    return Training(reports, time)


def estimates(training: Training) -> list[tuple[float, float, float]]:
    """Of the reports from 10 % of the time to 90 %: their time, remaining time as estimated, and as it was."""
    first, *reports = training.reports
    pace, found = Pace(first.done, first.time), []
    for report in reports:
        pace.take(report.done, report.time)
        if 0.1 <= (report.time - START) / (training.end - START) <= 0.9:
            remaining = pace.remaining
            assert remaining is not None
            found.append((report.time, remaining, training.end - report.time))
    return found


def noise(spread: float) -> Callable[[float], float]:
    generator = random.Random(1)
    return lambda _: generator.uniform(1 - spread, 1 + spread)


@pytest.mark.parametrize(
    ("training", "least", "most"),
    [
        pytest.param(simulate(1000, lambda _: 1.0), -0.001, 0.001, id="constant"),
        pytest.param(simulate(1000, noise(0.5)), -0.08, 0.08, id="uneven steps"),
        pytest.param(simulate(1000, lambda _: 1.0, extra={1: 90}), -0.001, 0.001, id="first step compiles"),
        pytest.param(simulate(1000, lambda done: 5.0 if done <= 0.01 else 1.0), -0.001, 0.17, id="ten slow steps"),
        pytest.param(simulate(1000, lambda _: 1.0, pause_every=10, pause=2), -0.02, 0.02, id="short evaluations"),
        pytest.param(simulate(1000, lambda _: 1.0, pause_every=50, pause=12.5), -0.13, 0.09, id="evaluations"),
        pytest.param(simulate(1000, lambda _: 1.0, pause_every=50, pause=50), -0.30, 0.26, id="long evaluations"),
        pytest.param(simulate(1000, lambda _: 1.0, extra={150: 5000}), -0.001, 0.001, id="machine sleeps once"),
        pytest.param(simulate(1000, lambda done: 1 + done), -0.31, 0.0, id="slows down to half the speed"),
        pytest.param(simulate(1000, lambda done: 2 - done), 0.0, 0.34, id="speeds up to double the speed"),
        pytest.param(simulate(1000, lambda _: 1.0, digits=2), -0.001, 0.001, id="whole percent"),
        pytest.param(simulate(100, lambda _: HOUR, digits=2), -0.001, 0.001, id="a percent an hour"),
        pytest.param(simulate(10, lambda _: 600.0, extra={1: 100}), -0.001, 0.17, id="ten epochs, the first compiles"),
        pytest.param(
            simulate(20000, lambda _: 60.0, pause_every=1440, pause=HOUR), -0.05, 0.01, id="two weeks with evaluations"
        ),
    ],
)
def test_estimate_of_a_whole_training(training: Training, least: float, most: float) -> None:
    """From a tenth of the time to its last tenth the error stays within bounds that suit how regular it is."""
    errors = [estimate / actual - 1 for _, estimate, actual in estimates(training)]
    assert least <= min(errors)
    assert max(errors) <= most


@pytest.mark.parametrize(
    "training",
    [
        pytest.param(simulate(1000, noise(0.5)), id="uneven steps"),
        pytest.param(simulate(1000, lambda _: 1.0, pause_every=50, pause=12.5), id="evaluations"),
        pytest.param(simulate(1000, lambda done: 1 + done), id="slows down"),
        pytest.param(simulate(1000, lambda done: 2.0 if done > 0.5 else 1.0), id="half the speed of a sudden"),
        pytest.param(simulate(1000, lambda _: 1.0, extra={500: 2000}), id="machine sleeps once"),
        pytest.param(simulate(1000, lambda _: 1.0, digits=2), id="whole percent"),
    ],
)
def test_estimates_do_not_jump(training: Training) -> None:
    """From one report to the next the expected end moves by 2 % of the whole at most, apart from a pause.

    The exception is the moment at which a pause is seen for the second time, and so for one that comes again and again.
    """
    whole = training.end - START
    moves = [
        abs(later[0] + later[1] - earlier[0] - earlier[1]) / whole
        for earlier, later in itertools.pairwise(estimates(training))
        if later[0] - earlier[0] < 10
    ]
    assert max(moves) < 0.02


def test_change_of_speed_is_followed() -> None:
    """A training that halves its speed in its middle is estimated within 11 % when 85 % of its steps are done."""
    training = simulate(1000, lambda done: 2.0 if done > 0.5 else 1.0)
    _, estimate, actual = next(each for each in estimates(training) if each[2] <= 300)
    assert estimate == pytest.approx(actual, rel=0.11)


def test_training_of_weeks_follows_within_a_day() -> None:
    """In its second week a training that halves its speed is estimated within 5 % a day later."""
    training = simulate(20000, lambda done: 120.0 if done > 0.5 else 60.0)
    change = START + 10000 * 60
    _, estimate, actual = next(each for each in estimates(training) if each[0] >= change + DAY)
    assert estimate == pytest.approx(actual, rel=0.05)


def test_no_estimate_without_a_basis() -> None:
    """There is none before two shares are a second apart, nor from a first step alone; at the end nothing remains."""
    pace = Pace(0.1, START)
    assert pace.remaining is None
    pace.take(0.1, START + 100)
    assert pace.remaining is None
    assert Pace(1.0, START).remaining == 0
    first_step = Pace(0.0, START)
    first_step.take(0.001, START + 100)
    assert first_step.remaining is None
    first_step.take(0.002, START + 101)
    assert first_step.remaining == pytest.approx(998)
    burst = Pace(0.1, START)
    burst.take(0.2, START + 0.9)
    assert burst.remaining is None
    burst.take(0.3, START + 2)
    assert burst.remaining == pytest.approx(0.7 * 10)


def test_bursts_are_read_as_what_they_are() -> None:
    """Output that is flushed once a minute, sixty reports at a time, tells the pace over minutes."""
    pace = Pace(0.0, START)
    for burst in range(10):
        for report in range(60):
            pace.take((burst * 60 + report + 1) / 6000, START + burst * 60 + report * 0.001)
    assert pace.remaining == pytest.approx(5400, rel=0.02)


def test_between_reports_time_passes() -> None:
    """Without news the remaining time goes down with the clock, but not below the next report."""
    pace = Pace(0.0, START)
    for hour in range(1, 11):
        pace.take(hour / 100, START + hour * HOUR)
    expected = {0: 90 * HOUR, 1800: 89.5 * HOUR, 3600: 89 * HOUR, 7200: 89 * HOUR}
    for seconds, remaining in expected.items():
        pace.take(0.1, START + 10 * HOUR + seconds)
        assert pace.remaining == pytest.approx(remaining)


@pytest.mark.parametrize("offset", [pytest.param(-HOUR, id="back"), pytest.param(HOUR, id="forward")])
def test_clock_that_is_set(offset: float) -> None:
    """A clock that jumps by an hour amid a training of minutes leaves the estimate as it is."""
    pace = Pace(0.0, START)
    for step in range(1, 101):
        pace.take(step / 1000, START + step + (offset if step > 50 else 0))
    assert pace.remaining == pytest.approx(900, rel=0.02)


def test_checkpoint_keeps_the_pace() -> None:
    """A training that begins again at an earlier step is estimated at once, by the pace that it had."""
    pace = Pace(0.0, START)
    for step in range(1, 101):
        pace.take(step / 1000, START + step)
    pace.take(0.05, START + 300)
    assert pace.remaining == pytest.approx(950)
    for step in range(51, 101):
        pace.take(step / 1000, START + 250 + step)
    assert pace.remaining == pytest.approx(900)


def test_training_that_becomes_shorter() -> None:
    """When the whole shrinks, what was done counts for more, and the time for a step stays."""
    pace = Pace(0.0, START)
    for step in range(1, 101):
        pace.take(step / 1000, START + step)
    pace.rescale(1000 / 500)
    assert pace.remaining == pytest.approx(400)
    pace.take(101 / 500, START + 101)
    assert pace.remaining == pytest.approx(399)


def test_assumed_pace() -> None:
    """An assumed pace is used at once, and yields to what is seen as if it had been seen from the beginning."""
    pace = Pace(0.5, START)
    pace.assume(1000)
    assert pace.remaining == pytest.approx(500)
    for step in range(501, 751):
        pace.take(step / 1000, START + (step - 500) * 2)
    remaining = pace.remaining
    assert remaining is not None
    assert 300 < remaining < 500  # 250 by the assumed pace, 500 by that of late


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 4e9), st.sampled_from([1.0, 1.0, 0.5, 3.0]))))
def test_estimate_of_anything(reports: list[tuple[float, float, float]]) -> None:
    """Whatever is reported in whatever order, the estimate is a number of seconds that is not negative."""
    pace = Pace(0.0, START)
    for done, time, factor in reports:
        pace.rescale(factor)
        pace.take(done, time)
        assert pace.remaining is None or pace.remaining >= 0
        assert pace.remaining is None or pace.remaining < 1e300


@pytest.mark.parametrize("factor", [2.0**-31, 2.0**31])
def test_training_that_changes_its_length_again_and_again(factor: float) -> None:
    """Numbers that leave all bounds end the estimate, and the next reports are a basis again."""
    pace = Pace(0.0, START)
    for step in range(1, 101):
        pace.rescale(factor)
        pace.take(step / 1000, START + step)
    for _ in range(100):
        pace.rescale(factor)
    for step in range(201, 501):
        pace.take(step / 1000, START + step)
    assert pace.remaining == pytest.approx(500, rel=0.01)


def test_memory_is_fixed() -> None:
    """A thousand paces take less than a megabyte, however many reports they have seen."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        paces = [Pace(0.0, START + number) for number in range(1000)]
        for pace in paces:
            for step in range(1, 11):
                pace.take(step / 100, START + 10000 + step * 1.5)
        assert tracemalloc.get_traced_memory()[0] - before < 1_000_000
    finally:
        tracemalloc.stop()


MINUTE, HOUR, DAY = 60, 3600, 86400
SECONDS = {"second": 1, "minute": MINUTE, "hour": HOUR, "day": DAY}


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        pytest.param(0, None, id="nothing remains"),
        pytest.param(60, "1 minute", id="a minute"),
        pytest.param(90, "1 minute 30 seconds", id="minutes and seconds"),
        pytest.param(10 * MINUTE - 1, "9 minutes 59 seconds", id="seconds up to ten minutes"),
        pytest.param(10 * MINUTE + 29, "10 minutes", id="no seconds from ten minutes on"),
        pytest.param(HOUR - 1, "1 hour", id="rounded up to another unit"),
        pytest.param(3610, "1 hour", id="the KEP's hour"),
        pytest.param(90 * MINUTE, "1 hour 30 minutes", id="hours and minutes"),
        pytest.param(795649, "9 days 5 hours", id="the KEP's days"),
        pytest.param(99 * DAY + 23 * HOUR, "99 days 23 hours", id="hours up to a hundred days"),
        pytest.param(100 * DAY + 11 * HOUR, "100 days", id="no hours from a hundred days on"),
        pytest.param(2**63 - 1, "106751991167301 days", id="the longest"),
    ],
)
def test_summarize(seconds: int, expected: str | None) -> None:
    """Remaining time is given in its two largest units, rounded where the smaller one would add nothing."""
    assert summarize(seconds) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        pytest.param(0, None, id="nothing remains"),
        pytest.param(1, "about 1 second", id="a second"),
        pytest.param(47, "about 45 seconds", id="five seconds"),
        pytest.param(44 * MINUTE + 9, "about 45 minutes", id="the issue's minutes"),
        pytest.param(795649, "about 9 days", id="a day"),
        pytest.param(123 * DAY, "about 120 days", id="ten days"),
    ],
)
def test_summarize_estimate(seconds: int, expected: str | None) -> None:
    """An estimate says so, and pretends to no more than it knows."""
    assert summarize(seconds, is_estimate=True) == expected


@given(st.integers(1, 1000 * DAY), st.booleans())
def test_summary_means_the_seconds(seconds: int, estimate: bool) -> None:
    """Read back, the words are within 7 % of the seconds, and tell estimates from reports."""
    summary = summarize(seconds, is_estimate=estimate)
    assert summary is not None
    assert is_estimate(summary) is estimate
    parts = re.findall(r"(\d+) (second|minute|hour|day)(s?)", summary)
    assert all((int(count) == 1) == (plural == "") for count, _, plural in parts)
    assert 1 <= len(parts) <= 2
    assert sum(int(count) * SECONDS[unit] for count, unit, _ in parts) == pytest.approx(seconds, rel=0.07)
