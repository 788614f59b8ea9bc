"""Values: how CEL's values are held in Python, and when two of them are equal.

bool, int, float, str, bytes, None, list and dict stand for themselves, timestamps are aware datetimes and durations
timedeltas; the rest is here.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

MIN_INT: Final = -(2**63)
MAX_INT: Final = 2**63 - 1
MAX_UINT: Final = 2**64 - 1


class Uint(int):
    """An unsigned integer."""


@dataclass(frozen=True, slots=True)
class Optional:
    """A value that may not be there."""

    present: bool
    value: Any = None


NONE: Final = Optional(present=False)
"""The optional without a value."""


def some(value: object) -> Optional:
    """The optional with a value."""
    return Optional(present=True, value=value)


@dataclass(frozen=True, slots=True)
class TypeName:
    """A type as a value: what `type(x)` returns."""

    name: str


def is_number(value: object) -> bool:
    """Whether a value is an int, a uint or a double."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def equal(left: object, right: object) -> bool:
    """CEL's equality: numbers are equal across types, values of different types are not."""
    if is_number(left) or is_number(right):
        return is_number(left) and is_number(right) and left == right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(equal(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, Optional) and isinstance(right, Optional):
        return left.present == right.present and equal(left.value, right.value)
    return type(left) is type(right) and bool(left == right)


def type_name(value: object) -> str:
    """The name of a value's type, as `type(x)` prints."""
    named: tuple[tuple[type, str], ...] = (
        (bool, "bool"), (Uint, "uint"), (int, "int"), (float, "double"), (str, "string"), (bytes, "bytes"),
        (list, "list"), (dict, "map"), (datetime, "google.protobuf.Timestamp"),
        (timedelta, "google.protobuf.Duration"), (Optional, "optional_type"), (TypeName, "type"),
    )  # fmt: skip
    declared: str | None = getattr(type(value), "CEL_TYPE", None)
    return declared or next((name for kind, name in named if isinstance(value, kind)), "null_type")


def contains(items: Any, value: object) -> bool:
    """Whether a list has an item, or a map a key."""
    if isinstance(items, dict):
        return find_key(items, value) is not None
    return any(equal(item, value) for item in items)


def find_key(entries: dict[Any, Any], key: object) -> list[Any] | None:
    """The value of a key in a list of one; None when the map does not have it. Whole doubles find whole numbers."""
    if isinstance(key, float) and key.is_integer():
        key = int(key)
    if not isinstance(key, str | int | bool):
        return None
    if key in entries and any(isinstance(known, bool) == isinstance(key, bool) for known in entries if known == key):
        return [entries[key]]
    return None
