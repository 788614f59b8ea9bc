"""Formats: the `format` keyword of schemas.

Those that definitions of trainings need are checked; other formats of a real API server are refused in definitions, and
what no API server knows is only a comment.
"""

from __future__ import annotations

import base64
import binascii
import re
from datetime import date, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_DATE_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_INTEGER_BITS: Final = {"int32": 32, "int64": 64}
UNSUPPORTED: Final = frozenset(
    (
        "bsonobjectid", "cidr", "creditcard", "duration", "email", "hexcolor", "hostname", "ipv4", "ipv6", "isbn",
        "isbn10", "isbn13", "k8s-long-name", "k8s-short-name", "mac", "rgbcolor", "ssn", "uri", "uuid", "uuid3",
        "uuid4", "uuid5",
    )
)  # fmt: skip
"""Formats of texts that a real API server checks and this one does not."""


def matches_format(text: str, name: str) -> bool:
    """Whether a text is of a string format; formats that the server does not know match everything."""
    check = _STRING_FORMATS.get(name)
    if check is None:
        return True
    try:
        return check(text)
    except (ValueError, binascii.Error):
        return False


def fits_format(value: float, name: str) -> bool:
    """Whether a number is in the range of `int32` or `int64`; other formats fit everything."""
    bits = _INTEGER_BITS.get(name)
    return bits is None or -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)


def _is_date_time(text: str) -> bool:
    return bool(_DATE_TIME.fullmatch(text)) and bool(datetime.fromisoformat(text.upper()))


_STRING_FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "byte": lambda text: base64.b64decode(text, validate=True) is not None,
    "date": lambda text: len(text) == 10 and date.fromisoformat(text) is not None,
    "date-time": _is_date_time,
    "datetime": _is_date_time,
}
