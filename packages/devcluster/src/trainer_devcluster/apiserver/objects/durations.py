"""Durations as `kubectl get` shows them (apimachinery's `util/duration.HumanDuration`)."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from trainer.kube.clock import parse_timestamp

UNKNOWN = "<unknown>"
INVALID = "<invalid>"

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_YEAR = 365 * _DAY
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:\d\d)")
_MICRO_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.,]\d{6}(?:Z|[+-]\d\d:\d\d)")
_MICRO_DIGITS: Final = 6


def human_duration(seconds: float) -> str:
    """A short text of at most two units: `90s`, `3m20s`, `65m`, `3h20m`, `30h`, `3d4h`, `400d`, `2y30d`.

    A second of clock skew into the future counts as zero; more is `<invalid>`.
    """
    whole = int(seconds)
    if whole < -1:
        return INVALID
    if whole < 2 * _MINUTE:
        return f"{max(whole, 0)}s"
    if whole < 10 * _MINUTE:
        return _two_units(whole, _MINUTE, "m", 1, "s")
    if whole < 3 * _HOUR:
        return f"{whole // _MINUTE}m"
    if whole < 8 * _HOUR:
        return _two_units(whole, _HOUR, "h", _MINUTE, "m")
    if whole < 2 * _DAY:
        return f"{whole // _HOUR}h"
    if whole < 8 * _DAY:
        return _two_units(whole, _DAY, "d", _HOUR, "h")
    if whole < 2 * _YEAR:
        return f"{whole // _DAY}d"
    if whole < 8 * _YEAR:
        return _two_units(whole, _YEAR, "y", _DAY, "d")
    return f"{whole // _YEAR}y"


def age(timestamp: object, now: datetime) -> str:
    """How long ago an RFC 3339 timestamp was; `<unknown>` without one, `<invalid>` when it cannot be parsed."""
    if not timestamp:
        return UNKNOWN
    try:
        return human_duration((now - parse_timestamp(str(timestamp))).total_seconds())
    except ValueError:
        return INVALID


def between(start: object, end: object) -> str:
    """The time between two RFC 3339 timestamps."""
    try:
        return human_duration((parse_timestamp(str(end)) - parse_timestamp(str(start))).total_seconds())
    except ValueError:
        return INVALID


def _two_units(seconds: int, large: int, large_unit: str, small: int, small_unit: str) -> str:
    rest = seconds % large // small
    return f"{seconds // large}{large_unit}" + (f"{rest}{small_unit}" if rest else "")


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
