"""Durations as Go writes them, and with it Kubernetes in all its configuration files: 15s, 1m30s, 500ms."""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction
from typing import Annotated, Final

from pydantic import AfterValidator, PlainSerializer, PlainValidator, WithJsonSchema

_MICROSECONDS: Final = {
    "ns": Fraction(1, 1000),
    "us": Fraction(1),
    "µs": Fraction(1),
    "μs": Fraction(1),
    "ms": Fraction(1000),
    "s": Fraction(1_000_000),
    "m": Fraction(60_000_000),
    "h": Fraction(3_600_000_000),
}
_UNIT: Final = "ns|us|µs|μs|ms|s|m|h"
_PART: Final = re.compile(rf"([0-9]{{1,20}}\.?[0-9]{{0,20}}|\.[0-9]{{1,20}})({_UNIT})")
_DURATION: Final = re.compile(rf"([-+]?)((?:{_PART.pattern}){{1,20}}|0)")
_LONGEST: Final = 2**63 // 1000
"""Microseconds; Go counts nanoseconds in 64 bits."""


def parse_duration(text: str) -> timedelta:
    """What a text such as `1m30s` says.

    Raises:
        ValueError: it is no duration, or none that a timedelta can tell; says what it must be.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError("must be a duration such as 500ms, 15s or 1m30s")
    parts = _PART.findall(match[2])
    total = sum((Fraction(number.rstrip(".")) * _MICROSECONDS[unit] for number, unit in parts), Fraction(0))
    if total.denominator != 1:
        raise ValueError("must be a whole number of microseconds")
    if total > _LONGEST:
        raise ValueError("must be at most 292 years, 2562047h")
    return timedelta(microseconds=int(-total if match[1] == "-" else total))


def format_duration(duration: timedelta) -> str:
    """The text that Go writes for a duration: `2m0s`, `1.5s`, `500ms`."""
    total = duration // timedelta(microseconds=1)
    sign, total = ("-", -total) if total < 0 else ("", total)
    if total == 0:
        return "0s"
    if total < 1000:
        return f"{sign}{total}µs"
    if total < 1_000_000:
        return f"{sign}{_decimal(total, 1000)}ms"
    minutes, rest = divmod(total, 60_000_000)
    hours, minutes = divmod(minutes, 60)
    words = f"{hours}h" if hours else ""
    words += f"{minutes}m" if hours or minutes else ""
    return f"{sign}{words}{_decimal(rest, 1_000_000)}s"


def _decimal(number: int, unit: int) -> str:
    whole, rest = divmod(number, unit)
    digits = f"{rest:0{len(str(unit)) - 1}d}".rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)


def _read(value: object) -> timedelta:
    if isinstance(value, timedelta):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise ValueError(f"must be a duration with its unit: {value}s if seconds are meant")  # noqa: TRY004 pydantic reads ValueError
    if not isinstance(value, str):
        raise ValueError("must be a duration such as 500ms, 15s or 1m30s")  # noqa: TRY004 pydantic reads ValueError
    return parse_duration(value)


Duration = Annotated[
    timedelta,
    PlainValidator(_read),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"format": "duration"}),
]
"""A duration such as `15s`; a number without unit is refused, since nobody could know what it means."""


def limits(
    *, least: timedelta | None = None, more_than: timedelta | None = None, most: timedelta | None = None
) -> AfterValidator:
    """The limits of a `Duration` field, all of them optional."""

    def check(value: timedelta) -> timedelta:
        if least is not None and value < least:
            raise ValueError(f"must be at least {format_duration(least)}")
        if more_than is not None and value <= more_than:
            raise ValueError(f"must be greater than {format_duration(more_than)}")
        if most is not None and value > most:
            raise ValueError(f"must be at most {format_duration(most)}")
        return value

    return AfterValidator(check)


PositiveDuration = Annotated[Duration, limits(more_than=timedelta())]
"""A duration that is not 0, with which nothing would ever be in time."""
