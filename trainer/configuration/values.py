"""Values of configuration files: durations as Go writes them (15s, 1m30s, 500ms), addresses, ports and names."""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction
from typing import Annotated, Final

from pydantic import AfterValidator, Field, PlainSerializer, PlainValidator, WithJsonSchema

from trainer.api import patterns
from trainer.api.model import text

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
"""Microseconds: Go counts nanoseconds in 64 bits."""


def parse_duration(written: str) -> timedelta:
    """Parse a duration such as `1m30s`.

    Raises:
        ValueError: it is no duration, or not a whole number of microseconds.
    """
    match = _DURATION.fullmatch(written)
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
    """Format a duration in units that Go reads: `2m`, `1m30s`, `500ms`."""
    rest, text = abs(duration), ""
    for unit in ("h", "m", "s", "ms", "us"):
        count, rest = divmod(rest, timedelta(microseconds=int(_MICROSECONDS[unit])))
        text += f"{count}{unit}" if count else ""
    return f"{'-' if duration < timedelta() else ''}{text}" or "0s"


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
"""A duration such as `15s`; a number without a unit is refused."""


def limits(least: timedelta, most: timedelta) -> AfterValidator:
    """The least and the greatest value of a `Duration` field."""

    def check(value: timedelta) -> timedelta:
        if value < least:
            raise ValueError(f"must be at least {format_duration(least)}")
        if value > most:
            raise ValueError(f"must be at most {format_duration(most)}")
        return value

    return AfterValidator(check)


def _positive(value: timedelta) -> timedelta:
    if value <= timedelta():
        raise ValueError("must be greater than 0s")
    return value


PositiveDuration = Annotated[Duration, AfterValidator(_positive)]
"""A duration greater than 0."""


NOWHERE: Final = "0"
"""The address of a server that is switched off."""
_ADDRESS: Final = re.compile(r"(\[[0-9a-fA-F:.]+\]|[\w.-]*):([0-9]{1,5})", re.ASCII)


def _check_address(value: str) -> str:
    match = _ADDRESS.fullmatch(value)
    if value != NOWHERE and (match is None or int(match[2]) > 65535):
        raise ValueError('must be host:port, or "0" for no server')
    return value


BindAddress = Annotated[str, AfterValidator(_check_address)]
"""`host:port`; an empty host is all addresses, IPv6 stands in brackets, and `"0"` is no server."""

Port = Annotated[int, Field(ge=1, le=65535)]
"""A port to listen on."""


def host_and_port(address: str) -> tuple[str, int] | None:
    """The two parts of a `BindAddress`; None if there is no server."""
    if address == NOWHERE:
        return None
    host, _, port = address.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)


Name = Annotated[str, Field(min_length=1)]
"""A name that must not be empty."""

ObjectName = Annotated[str, Field(min_length=1, json_schema_extra=text(pattern=patterns.OBJECT_NAME, longest=253))]
"""The name of an object in the cluster."""

Namespace = Annotated[str, Field(json_schema_extra=text(pattern=patterns.OBJECT_NAME, longest=63))]
"""The name of a namespace, or "" for none."""
