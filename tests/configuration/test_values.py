"""Durations as Go reads and writes them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.configuration.values import format_duration, parse_duration

MILLISECOND = timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        pytest.param("15s", timedelta(seconds=15), id="seconds"),
        pytest.param("1m30s", timedelta(seconds=90), id="parts"),
        pytest.param("500ms", 500 * MILLISECOND, id="milliseconds"),
        pytest.param("1.5h", timedelta(minutes=90), id="fraction"),
        pytest.param(".5s", 500 * MILLISECOND, id="no-whole"),
        pytest.param("-2s", timedelta(seconds=-2), id="negative"),
        pytest.param("0", timedelta(), id="zero-needs-no-unit"),
        pytest.param("2000ns", timedelta(microseconds=2), id="nanoseconds"),
        pytest.param("2562047h", timedelta(hours=2562047), id="longest"),
    ],
)
def test_read(text: str, duration: timedelta) -> None:
    """Every notation of Go is understood."""
    assert parse_duration(text) == duration


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "must be a duration", id="empty"),
        pytest.param("15", "must be a duration", id="no-unit"),
        pytest.param("15 s", "must be a duration", id="space"),
        pytest.param("1d", "must be a duration", id="day"),
        pytest.param("s", "must be a duration", id="no-number"),
        pytest.param("1e3s", "must be a duration", id="exponent"),
        pytest.param("\N{ARABIC-INDIC DIGIT ONE}s", "must be a duration", id="other-digits"),
        pytest.param("15s\n", "must be a duration", id="line-break"),
        pytest.param("1ns", "must be a whole number of microseconds", id="too-fine"),
        pytest.param("2562048h", "must be at most 292 years", id="too-long"),
    ],
)
def test_refused(text: str, message: str) -> None:
    """What Go does not understand is no duration, and neither is what Python cannot tell."""
    with pytest.raises(ValueError, match=message):
        parse_duration(text)


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        pytest.param(timedelta(microseconds=7), "7us", id="microseconds"),
        pytest.param(timedelta(microseconds=1500), "1ms500us", id="fraction"),
        pytest.param(500 * MILLISECOND, "500ms", id="milliseconds"),
        pytest.param(timedelta(hours=36, seconds=1), "36h1s", id="hours"),
        pytest.param(timedelta(seconds=-90), "-1m30s", id="negative"),
    ],
)
def test_written(duration: timedelta, text: str) -> None:
    """In whole numbers of units."""
    assert format_duration(duration) == text


@given(st.timedeltas(min_value=timedelta(hours=-2562047), max_value=timedelta(hours=2562047)))
def test_written_and_read(duration: timedelta) -> None:
    """What is written says the same when it is read."""
    assert parse_duration(format_duration(duration)) == duration
