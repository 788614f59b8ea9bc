"""JSON values with the digits of numbers as they were printed, and how errors show them."""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation
from typing import Final, TypeAlias

from trainer.kube.field_errors import FieldError

_SHOWN_LIMIT = 40
"""Most characters of a wrong value in an error."""


class Number(str):
    """A number as it was printed."""

    __slots__ = ()


class NotANumber(str):
    """NaN, Infinity or -Infinity, which Python prints although JSON lacks them."""

    __slots__ = ()


_STRING_OR_NOT_FINITE: Final = re.compile(
    r'"(?:[^"\\]|\\.)*+"?|(?P<sign>[-+]?)\b(?:(?P<nan>nan)|inf(?:inity)?)\b', re.IGNORECASE | re.DOTALL
)


def with_constants(text: str) -> str:
    """Spell what is not finite as Python's JSON does: printf of C writes `nan` and `-inf`, Go `+Inf`.

    Strings stay as they are.
    """
    return _STRING_OR_NOT_FINITE.sub(_constant, text)


def _constant(found: re.Match[str]) -> str:
    if found["sign"] is None:
        return found[0]
    return "NaN" if found["nan"] else f"{found['sign'].rstrip('+')}Infinity"


Members: TypeAlias = tuple[tuple[str, object], ...]
"""The members of a JSON object, duplicates included."""

_DECODER = json.JSONDecoder(
    object_pairs_hook=tuple, parse_float=Number, parse_int=Number, parse_constant=NotANumber, strict=True
)


def decode_values(text: str) -> object:
    """The value of a JSON text: an object is `Members`, a number a `Number`.

    Raises:
        json.JSONDecodeError: it is none.
        RecursionError: it is nested too deeply.
    """
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError:
        # Only for a line that is wrong otherwise: a number that is not finite must not cost the message.
        other = with_constants(text)
        if other == text:
            raise
        try:
            return _DECODER.decode(other)
        except json.JSONDecodeError:
            pass
        raise


def integer(value: object, most: int) -> int:
    """The integer from 0 to `most` that a value is, `45.0` included.

    Raises:
        ValueError: it is none; the text is the rule.
    """
    number = _exact(value) if isinstance(value, Number) else None
    if number is None:
        raise ValueError("must be an integer")
    if number < 0:
        raise ValueError("must be at least 0")
    if number > most:
        raise ValueError(f"must be at most {most}")
    if number != int(number):
        raise ValueError("must be an integer")
    return int(number)


def _exact(text: Number) -> Decimal | None:
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent of some 18 digits
        return None


def invalid_value(path: str, value: object, rule: str) -> FieldError:
    """The error of a value, which is shown, that breaks a rule."""
    return FieldError(path, f"Invalid value: {shown(value)}: {rule}")


def shown(value: object) -> str:
    """The beginning of a value, with control characters escaped."""
    match value:
        case Number() | NotANumber():
            return _shorten(value)
        case str():
            quoted = json.dumps(_shorten(value), ensure_ascii=False)
            return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in quoted)
        case tuple():
            return "{...}" if value else "{}"
        case list():
            return "[...]" if value else "[]"
        case _:
            return json.dumps(value)


def _shorten(text: str) -> str:
    return text if len(text) <= _SHOWN_LIMIT else f"{text[:_SHOWN_LIMIT]}..."
