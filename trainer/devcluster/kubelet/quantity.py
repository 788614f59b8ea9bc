"""Resource quantities: `500m`, `2`, `1Gi` (Kubernetes API, "Quantity")."""

from __future__ import annotations

import re
from decimal import Decimal

_SUFFIXES = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1),
    "k": Decimal(10**3), "M": Decimal(10**6), "G": Decimal(10**9), "T": Decimal(10**12), "P": Decimal(10**15),
    "E": Decimal(10**18), "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30), "Ti": Decimal(2**40),
    "Pi": Decimal(2**50), "Ei": Decimal(2**60),
}  # fmt: skip
_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)([a-zA-Z]*)")


def parse_quantity(value: str | float) -> Decimal:
    """The number that a quantity stands for.

    Raises:
        ValueError: it is no quantity.
    """
    match = _QUANTITY.fullmatch(str(value).strip())
    if match is None or match[2] not in _SUFFIXES:
        raise ValueError(f"{value!r} is not a quantity such as 500m, 2 or 1Gi")
    return Decimal(match[1]) * _SUFFIXES[match[2]]
