"""Points in time with nanoseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from trainer.kube.podlogs.instant import Instant


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        pytest.param("2026-01-01T00:00:01Z", Instant(1767225601, 0), id="seconds"),
        pytest.param("2026-01-01T00:00:01.5Z", Instant(1767225601, 500_000_000), id="fraction"),
        pytest.param("2026-01-01T00:00:01.123456789123Z", Instant(1767225601, 123_456_789), id="more than nanoseconds"),
        pytest.param("2026-01-01T01:00:01.000000007+01:00", Instant(1767225601, 7), id="another zone"),
        pytest.param("1969-12-31T23:59:59.5Z", Instant(-1, 500_000_000), id="before 1970"),
        pytest.param("2026-01-01", None, id="date"),
        pytest.param("2026-01-01T00:00:01", None, id="no zone"),
        pytest.param("2026-06-31T00:00:00Z", None, id="no such day"),
        pytest.param("9999-12-31T23:59:59-05:00", None, id="beyond the calendar"),
        pytest.param("2026-01-01T00:00:01Z ", None, id="more text"),
        pytest.param("\u0662026-01-01T00:00:01Z", None, id="digits of another script"),
        pytest.param("epoch", None, id="word"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_parse(text: str, instant: Instant | None) -> None:
    """Timestamps are read to the nanosecond, whatever their zone; what is none is None."""
    assert Instant.parse(text) == instant


@pytest.mark.parametrize(
    ("instant", "text", "second"),
    [
        pytest.param(Instant(1767225601), "2026-01-01T00:00:01Z", "2026-01-01T00:00:01Z", id="second"),
        pytest.param(Instant(1767225601, 500), "2026-01-01T00:00:01.0000005Z", "2026-01-01T00:00:01Z", id="fraction"),
        pytest.param(Instant(1767225600, 10), "2026-01-01T00:00:00.00000001Z", "2026-01-01T00:00:00Z", id="zeros"),
        pytest.param(Instant(-62135596800), "0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z", id="first year"),
    ],
)
def test_text(instant: Instant, text: str, second: str) -> None:
    """As text an instant is what it was read from, without zeros at the end; and its second, which is cut."""
    assert (str(instant), instant.second) == (text, second)
    assert Instant.parse(text) == instant


def test_datetimes() -> None:
    """A datetime becomes an instant and back; the zone is UTC."""
    moment = datetime(2026, 1, 1, 1, 0, 1, 250_000, tzinfo=timezone(timedelta(hours=1)))
    assert Instant.of(moment) == Instant(1767225601, 250_000_000)
    assert Instant.of(moment).moment == moment
    assert Instant(1767225601, 999).moment == datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)
