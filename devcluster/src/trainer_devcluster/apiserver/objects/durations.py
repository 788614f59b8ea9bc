"""Durations as `kubectl get` shows them (apimachinery's `util/duration.HumanDuration`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.clock import parse_timestamp

if TYPE_CHECKING:
    from datetime import datetime

UNKNOWN = "<unknown>"
INVALID = "<invalid>"

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_YEAR = 365 * _DAY


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
