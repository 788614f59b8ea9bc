"""Numbers as Experiments write them, and as OptimizationJobs do."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from decimal import Decimal, localcontext
from typing import Final

_WRITTEN: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_PLAIN: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
"""Bounds of an OptimizationJob."""
_DIGITS: Final = 100
"""Digits of results; texts have at most 64."""
_PLAIN_EXPONENT: Final = 20
"""Greater numbers, and smaller ones, are written with an exponent."""


def number_in(text: str, *, is_integer: bool) -> Decimal | None:
    """The number of a text; None if it is none, or too large for a float."""
    text = text.strip()
    if not (_INTEGER if is_integer else _WRITTEN).fullmatch(text) or not math.isfinite(float(text)):
        return None
    return Decimal(text)


def written(number: Decimal, text: str = "") -> str:
    """A number for an OptimizationJob: as its author wrote it if that is allowed there, else anew."""
    if _PLAIN.fullmatch(text):
        return text
    with localcontext(prec=_DIGITS):
        number = number.normalize()
        is_plain = not number or abs(number.adjusted()) <= _PLAIN_EXPONENT
        return format(number, "f") if is_plain else str(number)


def count_of(least: Decimal, most: Decimal, step: Decimal) -> int:
    """How many values there are from one to another."""
    with localcontext(prec=_DIGITS):
        exact = (most - least) / step
        return int(exact) + 1 if exact.adjusted() < _PLAIN_EXPONENT else 10**_PLAIN_EXPONENT


def values_of(least: Decimal, step: Decimal, count: int) -> Iterator[str]:
    """So many values."""
    with localcontext(prec=_DIGITS):
        for index in range(count):
            yield written(least + index * step)
