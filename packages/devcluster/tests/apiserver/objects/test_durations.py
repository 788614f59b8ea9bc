"""Durations and ages."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from trainer_devcluster.apiserver.objects.durations import age, between, canonical_time, human_duration

MINUTE, HOUR, DAY = 60, 3600, 86400


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0.4, "0s"),
        (119, "119s"),
        (2 * MINUTE, "2m"),
        (3 * MINUTE + 20, "3m20s"),
        (10 * MINUTE, "10m"),
        (65 * MINUTE, "65m"),
        (3 * HOUR, "3h"),
        (3 * HOUR + 20 * MINUTE, "3h20m"),
        (30 * HOUR, "30h"),
        (3 * DAY + 4 * HOUR, "3d4h"),
        (8 * DAY, "8d"),
        (400 * DAY, "400d"),
        (2 * 365 * DAY + 30 * DAY, "2y30d"),
        (9 * 365 * DAY, "9y"),
    ],
)
def test_human_duration(seconds: float, text: str) -> None:
    """Two units at most, fewer the longer it is."""
    assert human_duration(seconds) == text


@pytest.mark.parametrize(
    ("timestamp", "text"),
    [("2026-01-01T00:00:00Z", "90s"), (None, "<unknown>"), ("", "<unknown>"), ("yesterday", "<invalid>")],
)
def test_age(timestamp: str | None, text: str) -> None:
    """Ages are relative to the time of the request."""
    assert age(timestamp, datetime(2026, 1, 1, 0, 1, 30, tzinfo=UTC)) == text


def test_between() -> None:
    """The duration of something that has ended."""
    assert between("2026-01-01T00:00:00Z", "2026-01-01T00:05:10Z") == "5m10s"
    assert between("x", "2026-01-01T00:05:10Z") == "<invalid>"


@pytest.mark.parametrize(
    ("text", "micro", "expected"),
    [
        pytest.param("2026-11-21T20:01:13Z", False, "2026-11-21T20:01:13Z", id="as-written"),
        pytest.param("2026-11-21T20:01:13+00:00", False, "2026-11-21T20:01:13Z", id="utc-in-numbers"),
        pytest.param("2026-11-21T20:01:13+01:30", False, "2026-11-21T18:31:13Z", id="elsewhere"),
        pytest.param("2026-11-21T20:01:13.987654321Z", False, "2026-11-21T20:01:13Z", id="finer"),
        pytest.param("0001-01-01T00:00:00Z", False, "0001-01-01T00:00:00Z", id="zero"),
        pytest.param("2026-11-21T20:01:13.000001Z", True, "2026-11-21T20:01:13.000001Z", id="micro"),
        pytest.param("2026-11-21T20:01:13.120000-02:00", True, "2026-11-21T22:01:13.120000Z", id="micro-elsewhere"),
    ],
)
def test_canonical(text: str, micro: bool, expected: str) -> None:
    """Times are kept in UTC, in whole seconds or microseconds."""
    assert canonical_time(text, micro=micro) == expected


@pytest.mark.parametrize(
    ("text", "micro"),
    [
        pytest.param("yesterday", False, id="words"),
        pytest.param("", False, id="empty"),
        pytest.param("2026-11-21", False, id="date"),
        pytest.param("2026-11-21T20:01:13", False, id="no-zone"),
        pytest.param("2026-13-21T20:01:13Z", False, id="month"),
        pytest.param("2026-02-30T20:01:13Z", False, id="day"),
        pytest.param("0001-01-01T00:00:00+05:00", False, id="before-the-first-day"),
        pytest.param("2026-11-21T20:01:13Z", True, id="micro-without-fraction"),
        pytest.param("2026-11-21T20:01:13.123Z", True, id="micro-too-coarse"),
    ],
)
def test_refused(text: str, micro: bool) -> None:
    """What is not a time is refused with what was expected."""
    with pytest.raises(ValueError, match=r"^parsing time"):
        canonical_time(text, micro=micro)
