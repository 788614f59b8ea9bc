"""Times of built-in kinds, as Go reads and writes them: `metav1.Time` and `metav1.MicroTime`."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:\d\d)")
_MICRO_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.,]\d{6}(?:Z|[+-]\d\d:\d\d)")
_MICRO_DIGITS: Final = 6


def canonical_time(text: str, *, micro: bool) -> str:
    """A time in UTC and in the precision in which it is kept: whole seconds, or microseconds.

    Raises:
        ValueError: it is not a time, or lacks what the precision asks for; worded as Go does.
    """
    layout = "2006-01-02T15:04:05.000000Z07:00" if micro else "2006-01-02T15:04:05Z07:00"
    if not (_MICRO_TIME if micro else _TIME).fullmatch(text):
        raise ValueError(f'parsing time "{text}" as "{layout}": cannot parse "{text}" as "{layout}"')
    seconds, fraction, zone = _split(text)
    try:
        moment = datetime.fromisoformat(f"{seconds}.{fraction}{zone}").astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f'parsing time "{text}": {error}') from error
    # strftime does not pad years below 1000.
    return moment.isoformat(timespec="microseconds" if micro else "seconds").replace("+00:00", "Z")


def _split(text: str) -> tuple[str, str, str]:
    zone = "+00:00" if text.endswith("Z") else text[-6:]
    clock = text.removesuffix("Z") if text.endswith("Z") else text[:-6]
    seconds, _, fraction = clock.replace(",", ".").partition(".")
    return seconds, fraction[:_MICRO_DIGITS].ljust(_MICRO_DIGITS, "0"), zone
