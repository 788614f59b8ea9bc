from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.progress.summary import is_estimate, summarize

MINUTE, HOUR, DAY = 60, 3600, 86400
SECONDS = {"second": 1, "minute": MINUTE, "hour": HOUR, "day": DAY}


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        pytest.param(0, None, id="nothing remains"),
        pytest.param(1, "1 second", id="singular"),
        pytest.param(30, "30 seconds", id="plural"),
        pytest.param(59, "59 seconds", id="below a minute"),
        pytest.param(60, "1 minute", id="a minute"),
        pytest.param(90, "1 minute 30 seconds", id="minutes and seconds"),
        pytest.param(10 * MINUTE - 1, "9 minutes 59 seconds", id="seconds up to ten minutes"),
        pytest.param(10 * MINUTE + 29, "10 minutes", id="no seconds from ten minutes on"),
        pytest.param(45 * MINUTE, "45 minutes", id="the issue's minutes"),
        pytest.param(HOUR - 1, "1 hour", id="rounded up to another unit"),
        pytest.param(3610, "1 hour", id="the KEP's hour"),
        pytest.param(90 * MINUTE, "1 hour 30 minutes", id="hours and minutes"),
        pytest.param(DAY - 1, "1 day", id="rounded up to a day"),
        pytest.param(795649, "9 days 5 hours", id="the KEP's days"),
        pytest.param(30 * DAY, "30 days", id="days"),
        pytest.param(99 * DAY + 23 * HOUR, "99 days 23 hours", id="hours up to a hundred days"),
        pytest.param(100 * DAY + 11 * HOUR, "100 days", id="no hours from a hundred days on"),
        pytest.param(2**63 - 1, "106751991167301 days", id="the longest"),
    ],
)
def test_summarize(seconds: int, expected: str | None) -> None:
    """Remaining time is told in its two largest units, rounded where the smaller one would tell nobody anything."""
    assert summarize(seconds) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        pytest.param(0, None, id="nothing remains"),
        pytest.param(1, "about 1 second", id="a second"),
        pytest.param(47, "about 45 seconds", id="five seconds"),
        pytest.param(100, "about 1 minute 40 seconds", id="ten seconds"),
        pytest.param(7 * MINUTE + 10, "about 7 minutes", id="half a minute"),
        pytest.param(44 * MINUTE + 9, "about 45 minutes", id="the issue's minutes"),
        pytest.param(2 * HOUR - 99, "about 2 hours", id="ten minutes"),
        pytest.param(5 * HOUR + 14 * MINUTE, "about 5 hours", id="half an hour"),
        pytest.param(20 * HOUR, "about 20 hours", id="an hour"),
        pytest.param(3 * DAY + 100, "about 3 days", id="some hours"),
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


def test_no_summary_is_no_estimate() -> None:
    """What has no summary has not been estimated."""
    assert not is_estimate(None)
