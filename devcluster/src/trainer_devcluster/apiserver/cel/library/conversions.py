"""Conversions between types."""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from trainer_devcluster.apiserver.cel.errors import EvaluationError
from trainer_devcluster.apiserver.cel.library.operators import unsigned, whole
from trainer_devcluster.apiserver.cel.library.times import duration_text, parse_duration, parse_time, time_text
from trainer_devcluster.apiserver.cel.values import TypeName, Uint, type_name

if TYPE_CHECKING:
    from trainer_devcluster.apiserver.cel.signatures import Function

_DOUBLE: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|infinity|nan)", re.ASCII | re.IGNORECASE)
_TRUE: Final = ("1", "t", "T", "TRUE", "true", "True")
_EXPONENT_FROM: Final = 6
_FALSE: Final = ("0", "f", "F", "FALSE", "false", "False")


def double_text(value: float) -> str:
    """A double as text: the shortest that means the same, with an exponent from a million on."""
    if not math.isfinite(value):
        return {math.inf: "+Inf", -math.inf: "-Inf"}.get(value, "NaN")
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    sign = "-" if value < 0 else ""
    digits, scale = _significant(abs(value))
    if -4 <= scale < _EXPONENT_FROM:
        return f"{sign}{abs(value):.{max(len(digits) - 1 - scale, 0)}f}"
    rest = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{rest}e{scale:+03d}"


def _significant(value: float) -> tuple[str, int]:
    """The shortest digits that tell a double from all others, and the power of ten of the first."""
    parts = Decimal(repr(value)).as_tuple()
    digits = "".join(map(str, parts.digits))
    exponent = parts.exponent if isinstance(parts.exponent, int) else 0
    return digits.rstrip("0") or "0", len(digits) - 1 + exponent


def text_of(value: Any) -> str:
    """What `string(value)` returns."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return double_text(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from error
    if isinstance(value, datetime):
        return time_text(value)
    if isinstance(value, timedelta):
        return duration_text(value)
    return str(value)


def _int_of_double(value: float) -> int:
    if not math.isfinite(value):
        raise EvaluationError("integer overflow")
    return whole(math.trunc(value))


def _parsed_int(text: str) -> int:
    if not re.fullmatch(r"[+-]?\d+", text, re.ASCII):
        raise EvaluationError(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return whole(int(text))


def _parsed_uint(text: str) -> Uint:
    if not re.fullmatch(r"\d+", text, re.ASCII):
        raise EvaluationError(f'strconv.ParseUint: parsing "{text}": invalid syntax')
    return unsigned(int(text))


def _parsed_double(text: str) -> float:
    try:
        return float(text if _DOUBLE.fullmatch(text) else "")
    except ValueError as error:
        raise EvaluationError(f'strconv.ParseFloat: parsing "{text}": invalid syntax') from error


def _parsed_bool(text: str) -> bool:
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise EvaluationError(f'strconv.ParseBool: parsing "{text}": invalid syntax')


def _itself(value: Any) -> Any:
    return value


SIGNATURES: Final[list[tuple[str, Function]]] = [
    ("bool(bool) -> bool", _itself),
    ("bool(string) -> bool", _parsed_bool),
    ("bytes(bytes) -> bytes", _itself),
    ("bytes(string) -> bytes", str.encode),
    ("double(double) -> double", _itself),
    ("double(int) -> double", float),
    ("double(uint) -> double", float),
    ("double(string) -> double", _parsed_double),
    ("int(int) -> int", _itself),
    ("int(uint) -> int", lambda value: whole(int(value))),
    ("int(double) -> int", _int_of_double),
    ("int(string) -> int", _parsed_int),
    ("int(timestamp) -> int", lambda moment: math.floor(moment.timestamp())),
    ("int(duration) -> int", lambda span: whole(span // timedelta(microseconds=1) * 1000)),
    ("uint(uint) -> uint", _itself),
    ("uint(int) -> uint", unsigned),
    ("uint(double) -> uint", lambda value: unsigned(_int_of_double(value))),
    ("uint(string) -> uint", _parsed_uint),
    *((f"string({kind}) -> string", text_of) for kind in (
        "string", "bool", "bytes", "double", "duration", "int", "timestamp", "uint", "net.IP", "net.CIDR",
    )),
    ("timestamp(timestamp) -> timestamp", _itself),
    ("timestamp(string) -> timestamp", parse_time),
    ("duration(duration) -> duration", _itself),
    ("duration(string) -> duration", parse_duration),
    ("dyn(A) -> dyn", _itself),
    ("type(A) -> type<A>", lambda value: TypeName(type_name(value))),
]  # fmt: skip
