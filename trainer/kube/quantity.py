"""Amounts of resources as Kubernetes writes them (`resource.Quantity`)."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any

_QUANTITY = re.compile(
    r"(?P<number>[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+))(?P<suffix>[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?", re.ASCII
)
_DECIMAL = {
    suffix: Decimal(10) ** exponent
    for suffix, exponent in {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}.items()
}
_BINARY = {f"{prefix}i": Decimal(1024) ** power for power, prefix in enumerate("KMGTPE", start=1)}


def parse_quantity(value: Any) -> Decimal:
    """The exact amount.

    Raises:
        ValueError: the value is not a number or a string such as `2`, `500m`, `4Gi` or `1e3`.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"must be a quantity such as 2, 500m or 4Gi, got {value!r}")  # noqa: TRY004 one error for both
    match = _QUANTITY.fullmatch(str(value))
    if match is None:
        raise ValueError(f"must be a quantity such as 2, 500m or 4Gi, got {value!r}")
    number, suffix = Decimal(match["number"]), match["suffix"] or ""
    if len(suffix) > 1 and suffix[0] in "eE" and suffix[1] != "i":
        return number.scaleb(int(suffix[1:]))
    return number * (_DECIMAL | _BINARY).get(suffix, Decimal(1))


def whole_units(value: Any) -> int:
    """The amount rounded up: 2500m CPUs occupy three.

    Raises:
        ValueError: as `parse_quantity`.
    """
    return math.ceil(parse_quantity(value))
