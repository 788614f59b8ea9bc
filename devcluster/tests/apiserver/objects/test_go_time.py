"""Times as Go reads and writes them."""

from __future__ import annotations

import pytest

from trainer_devcluster.apiserver.objects.go_time import canonical_time


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
