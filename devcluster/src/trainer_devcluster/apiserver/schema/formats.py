"""Formats: the `format` keyword of schemas, and regular expressions in Go's syntax."""

from __future__ import annotations

import base64
import binascii
import functools
import ipaddress
import re
import uuid
from datetime import date, datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

_DURATION: Final = re.compile(r"-?(\d+(\.\d+)?|\.\d+)(ns|us|µs|ms|s|m|h|d|w)")
_DATE_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
_HOST_NAME: Final = re.compile(
    r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*"
)
_INTEGER_BITS: Final = {"int32": 32, "int64": 64}
_POSIX_CLASSES: Final = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": "\\x00-\\x7F", "blank": "\\t ", "digit": "0-9", "lower": "a-z",
    "print": " -~", "punct": "!-/:-@\\[-`{-~", "space": "\\t\\n\\v\\f\\r ", "upper": "A-Z", "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}  # fmt: skip


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


@functools.lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """A Go regular expression, to be used with `search`.

    Raises:
        ValueError: it cannot be compiled, or uses syntax (such as Unicode classes) that Python's engine does not have.
    """
    try:
        return re.compile(_translate(pattern), re.ASCII)
    except (re.error, OverflowError) as error:
        raise ValueError(f"must be a valid regular expression, but isn't: {error}") from error


def _translate(pattern: str) -> str:
    multiline = bool(re.match(r"\(\?[is]*m", pattern))
    out, position, in_class = [], 0, False
    while position < len(pattern):
        character = pattern[position]
        if character == "\\":
            pair = pattern[position : position + 2]
            out.append(r"\Z" if pair == r"\z" else pair)
            position += 2
            continue
        posix = re.match(r"\[:(\w+):\]", pattern[position:]) if in_class else None
        if posix is not None and posix[1] in _POSIX_CLASSES:
            out.append(_POSIX_CLASSES[posix[1]])
            position += posix.end()
            continue
        if character == "[" and not in_class:
            in_class = True
            # A bracket right after the opening one stands for itself.
            opening = re.match(r"\[\^?\]?", pattern[position:])
            out.append(opening[0] if opening else "[")
            position += opening.end() if opening else 1
            continue
        if character == "]":
            in_class = False
        end_of_text = character == "$" and not in_class and not multiline
        out.append(r"\Z" if end_of_text else character)
        position += 1
    return "".join(out)


def _is_date_time(text: str) -> bool:
    return bool(_DATE_TIME.fullmatch(text)) and bool(datetime.fromisoformat(text.upper()))


def _is_duration(text: str) -> bool:
    return text == "0" or (bool(text) and _DURATION.sub("", text.removeprefix("-")) == "")


def _is_uri(text: str) -> bool:
    parts = urlsplit(text)
    return bool(parts.scheme or text.startswith("/"))


_STRING_FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "byte": lambda text: base64.b64decode(text, validate=True) is not None,
    "cidr": lambda text: "/" in text and ipaddress.ip_interface(text) is not None,
    "date": lambda text: len(text) == 10 and date.fromisoformat(text) is not None,
    "date-time": _is_date_time,
    "datetime": _is_date_time,
    "duration": _is_duration,
    "email": lambda text: bool(re.fullmatch(r"[^@\s]+@[^@\s]+", text)),
    "hostname": lambda text: len(text) <= 253 and bool(_HOST_NAME.fullmatch(text)),
    "ipv4": lambda text: ipaddress.IPv4Address(text) is not None,
    "ipv6": lambda text: ipaddress.IPv6Address(text) is not None,
    "mac": lambda text: bool(re.fullmatch(r"([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}", text)),
    "uri": _is_uri,
    "uuid": lambda text: uuid.UUID(text) is not None,
}
