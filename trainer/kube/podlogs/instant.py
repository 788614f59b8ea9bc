"""Points in time as container runtimes write them in front of log lines: RFC 3339 with nanoseconds."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

_STAMP = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]+))?(Z|[+-][0-9]{2}:[0-9]{2})")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)


class Instant(NamedTuple):
    """A point in time with the nanoseconds that `datetime` lacks; instants compare and sort by time."""

    seconds: int
    """Seconds since 1970-01-01T00:00:00Z."""
    nanoseconds: int = 0
    """Nanoseconds within the second, 0 to 999,999,999. Default: 0."""

    @classmethod
    def parse(cls, text: str) -> Instant | None:
        """The instant that an RFC 3339 timestamp names; None when the text is something else.

        Digits beyond nanoseconds are dropped.
        """
        match = _STAMP.fullmatch(text)
        if match is None:
            return None
        date_time, fraction, zone = match.groups()
        try:
            moment = datetime.fromisoformat(date_time + zone).astimezone(UTC)
        except (ValueError, OverflowError):  # such as the 31st of June
            return None
        return cls((moment - _EPOCH) // _SECOND, int(fraction[:9].ljust(9, "0")) if fraction else 0)

    @classmethod
    def of(cls, moment: datetime) -> Instant:
        """The instant of an aware `datetime`."""
        seconds, rest = divmod(moment - _EPOCH, _SECOND)
        return cls(seconds, rest.microseconds * 1000)

    @property
    def moment(self) -> datetime:
        """The instant in UTC; digits beyond microseconds are dropped."""
        return _EPOCH + timedelta(seconds=self.seconds, microseconds=self.nanoseconds // 1000)

    @property
    def second(self) -> str:
        """RFC 3339 in UTC without the fraction, as metav1.Time is written and `sinceTime` is understood."""
        return self.moment.replace(tzinfo=None).isoformat(timespec="seconds") + "Z"

    def __str__(self) -> str:
        """RFC 3339 in UTC, the fraction without zeros at its end, as container runtimes write it."""
        fraction = f".{self.nanoseconds:09}".rstrip("0") if self.nanoseconds else ""
        return f"{self.second[:-1]}{fraction}Z"
