"""Durations and ages."""

from __future__ import annotations

import pytest

from trainer_devcluster.apiserver.objects.durations import between, canonical_time, human_duration

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


def test_between() -> None:
    """The duration of something that has ended."""
    assert between("2026-01-01T00:00:00Z", "2026-01-01T00:05:10Z") == "5m10s"
    assert between("x", "2026-01-01T00:05:10Z") == "<invalid>"


@pytest.mark.parametrize(
    ("text", "micro"),
    [
        pytest.param("2026-13-21T20:01:13Z", False, id="month"),
        pytest.param("0001-01-01T00:00:00+05:00", False, id="before-the-first-day"),
    ],
)
def test_refused(text: str, micro: bool) -> None:
    """What is not a time is refused with what was expected."""
    with pytest.raises(ValueError, match=r"^parsing time"):
        canonical_time(text, micro=micro)
