"""Times: timestamps and durations."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from trainer_devcluster.apiserver.cel.errors import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainer_devcluster.apiserver.cel.signatures import Function

_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)
_DURATION: Final = re.compile(r"[+-]?(?:0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)", re.ASCII)
_PART: Final = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_MICROSECONDS: Final = {"ns": 1e-3, "us": 1, "µs": 1, "μs": 1, "ms": 1e3, "s": 1e6, "m": 60e6, "h": 3600e6}
_OFFSET: Final = re.compile(r"([+-]?)(\d\d):(\d\d)", re.ASCII)
_SECOND: Final = timedelta(seconds=1)
_PARTS: Final[dict[str, Callable[[datetime], int]]] = {
    "getDate": lambda moment: moment.day,
    "getDayOfMonth": lambda moment: moment.day - 1,
    "getDayOfWeek": lambda moment: (moment.weekday() + 1) % 7,
    "getDayOfYear": lambda moment: moment.timetuple().tm_yday - 1,
    "getFullYear": lambda moment: moment.year,
    "getHours": lambda moment: moment.hour,
    "getMilliseconds": lambda moment: moment.microsecond // 1000,
    "getMinutes": lambda moment: moment.minute,
    "getMonth": lambda moment: moment.month - 1,
    "getSeconds": lambda moment: moment.second,
}
_UNITS: Final = {
    "getHours": timedelta(hours=1),
    "getMinutes": timedelta(minutes=1),
    "getSeconds": _SECOND,
    "getMilliseconds": timedelta(milliseconds=1),
}


def parse_time(text: str) -> datetime:
    """A moment from RFC 3339.

    Raises:
        EvaluationError: it is no such text.
    """
    match = _TIME.fullmatch(text)
    try:
        return datetime.fromisoformat(f"{match[1]}{(match[2] or '')[:7]}{match[3]}" if match else "")
    except ValueError as error:
        raise EvaluationError(f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse') from error


def time_text(moment: datetime) -> str:
    """A moment as RFC 3339."""
    text = moment.astimezone(UTC).isoformat().removesuffix("+00:00")
    return (text.rstrip("0") if "." in text else text) + "Z"


def parse_duration(text: str) -> timedelta:
    """A span from Go's notation: `1h30m`, `-5.5s`.

    Raises:
        EvaluationError: it is no such text.
    """
    if _DURATION.fullmatch(text) is None:
        raise EvaluationError(f'time: invalid duration "{text}"')
    amount = sum(float(number) * _MICROSECONDS[unit] for number, unit in _PART.findall(text))
    return timedelta(microseconds=-amount if text.startswith("-") else amount)


def duration_text(span: timedelta) -> str:
    """A span in seconds: `5400s`."""
    microseconds = span // timedelta(microseconds=1)
    seconds, rest = divmod(abs(microseconds), 1_000_000)
    fraction = f".{rest:06d}".rstrip("0") if rest else ""
    return f"{'-' if microseconds < 0 else ''}{seconds}{fraction}s"


def _in_zone(moment: datetime, zone: str) -> datetime:
    match = _OFFSET.fullmatch(zone)
    if match is not None:
        offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
        return moment.astimezone(timezone(-offset if match[1] == "-" else offset))
    try:
        return moment.astimezone(ZoneInfo(zone))
    except (ValueError, OSError, LookupError) as error:
        raise EvaluationError(f"unknown time zone {zone}") from error


def _getters() -> list[tuple[str, Function]]:
    found: list[tuple[str, Function]] = []
    for name, part in _PARTS.items():
        found.append((f"timestamp.{name}() -> int", lambda moment, part=part: part(moment.astimezone(UTC))))
        found.append((f"timestamp.{name}(string) -> int", lambda moment, zone, part=part: part(_in_zone(moment, zone))))
    for name, unit in _UNITS.items():
        found.append((f"duration.{name}() -> int", lambda span, unit=unit: int(span / unit)))
    return found


def _checked(moment: datetime, span: timedelta) -> datetime:
    try:
        return moment + span
    except OverflowError as error:
        raise EvaluationError("timestamp overflow") from error


SIGNATURES: Final[list[tuple[str, Function]]] = [
    *_getters(),
    ("_+_(timestamp, duration) -> timestamp", _checked),
    ("_+_(duration, timestamp) -> timestamp", lambda span, moment: _checked(moment, span)),
    ("_+_(duration, duration) -> duration", lambda left, right: left + right),
    ("_-_(timestamp, timestamp) -> duration", lambda left, right: left - right),
    ("_-_(timestamp, duration) -> timestamp", lambda moment, span: _checked(moment, -span)),
    ("_-_(duration, duration) -> duration", lambda left, right: left - right),
]
