"""Amounts of resources as Kubernetes writes them (`resource.Quantity`).

Every amount that is read is bounded: its text, its exponent and its size. What is calculated with it is therefore
cheap, whoever wrote it: exact arithmetic with `1e999999` takes minutes.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

LONGEST_QUANTITY: Final = 64
"""Characters of an amount. No amount up to the largest one needs half as many."""
_LARGEST: Final = 2**63 - 1
"""The largest amount; Kubernetes takes whatever is larger for this one, without a word."""
_EXPONENT_DIGITS: Final = 2
_FORM: Final = "must be a quantity such as 2, 500m or 4Gi"

_QUANTITY = re.compile(
    r"(?P<number>[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+))(?P<suffix>[KMGTPE]i|[numkMGTPE]|(?P<exponent>[eE][+-]?(?P<digits>[0-9]+)))?",
    re.ASCII,
)
_BYTES = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?) ?(?P<prefix>[kKMGTPE]?)(?P<binary>i?)[bB](?:ytes?)?", re.ASCII)
_RESOURCE_NAME = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?", re.ASCII)
_DECIMAL = {
    suffix: Decimal(10) ** exponent
    for suffix, exponent in {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}.items()
}
_BINARY = {f"{prefix}i": Decimal(1024) ** power for power, prefix in enumerate("KMGTPE", start=1)}

_NANO = 9
"""Digits after the point that a quantity may have; smaller parts are rounded up."""
_SUFFIXES = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")


def parse_quantity(value: Any) -> Decimal:
    """The exact amount.

    Raises:
        ValueError: the value is not a number or a string such as `2`, `500m`, `4Gi` or `1e3`, or it is out of bounds.
    """
    try:
        return _parse(value)
    except ValueError as error:
        # Writing a number of thousands of digits would take long, or raise.
        is_long = len(value) > LONGEST_QUANTITY if isinstance(value, str) else isinstance(value, int)
        raise ValueError(f"{error}" if is_long else f"{error}, got {value!r}") from None


def quantity_problem(value: Any) -> str | None:
    """The rule that an amount breaks, for messages that show the value themselves; None when it can be read."""
    try:
        _parse(value)
    except ValueError as error:
        return str(error)
    return None


def quantity_advice(text: str) -> str:
    """Advice for a malformed number of bytes such as 200MB; empty for all other texts."""
    found = _BYTES.fullmatch(text) if len(text) <= LONGEST_QUANTITY else None
    if found is None:
        return ""
    number, prefix = found["number"], found["prefix"].upper()
    if not prefix:
        return f"write {number}"
    decimal = "k" if prefix == "K" else prefix
    return f"write {number}{prefix}i" if found["binary"] else f"write {number}{decimal} or {number}{prefix}i"


def _parse(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(_FORM)  # noqa: TRY004 one error for both
    if isinstance(value, int):
        return _in_range(Decimal(value) if -_LARGEST <= value <= _LARGEST else Decimal("inf"))
    text = str(value)
    if len(text) > LONGEST_QUANTITY:
        raise ValueError(f"must be a quantity of at most {LONGEST_QUANTITY} characters, such as 2, 500m or 4Gi")
    match = _QUANTITY.fullmatch(text)
    if match is None:
        advice = quantity_advice(text)
        raise ValueError(f"{_FORM}: {advice}" if advice else _FORM)
    if len(match["digits"] or "") > _EXPONENT_DIGITS:
        raise ValueError(f"{_FORM}, with an exponent of at most {_EXPONENT_DIGITS} digits")
    number, suffix = Decimal(match["number"]), match["suffix"] or ""
    if match["exponent"]:
        return _in_range(number.scaleb(int(suffix[1:])))
    return _in_range(number * (_DECIMAL | _BINARY).get(suffix, Decimal(1)))


def _in_range(amount: Decimal) -> Decimal:
    if abs(amount) > _LARGEST:
        raise ValueError(f"must be a quantity below 8Ei, of at most {_LARGEST}")
    return amount


def parse_amounts(text: str) -> dict[str, str]:
    """Read amounts of resources from a command line: `nvidia.com/gpu=8,cpu=4,memory=16Gi`.

    Raises:
        ValueError: an entry is not NAME=QUANTITY, is negative, or a name comes twice.
    """
    amounts: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, equals, amount = (part.strip() for part in entry.partition("="))
        if not equals or _RESOURCE_NAME.fullmatch(name) is None:
            raise ValueError(f"{entry!r} is not NAME=QUANTITY, such as nvidia.com/gpu=8 or memory=16Gi")
        if parse_quantity(amount) < 0:
            raise ValueError(f"{name}: must not be negative, got {amount!r}")
        if name in amounts:
            raise ValueError(f"{name} is given twice")
        amounts[name] = amount
    return amounts


def whole_units(value: Any) -> int:
    """The amount rounded up: 2500m CPUs occupy three.

    Raises:
        ValueError: as `parse_quantity`.
    """
    return math.ceil(parse_quantity(value))


@dataclass(frozen=True, slots=True)
class Quantity:
    """An amount to calculate with; `str()` of it is Kubernetes' canonical form: `4`, `1500m`, `6Gi`."""

    amount: Decimal = Decimal(0)
    """The exact amount. Defaults to nothing."""
    is_binary: bool = False
    """Whether it is written in powers of 1024 where possible. Defaults to powers of 1000, as for CPUs."""

    @classmethod
    def parse(cls, value: Any) -> Quantity:
        """Read an amount, and in what powers it is written.

        Raises:
            ValueError: as `parse_quantity`.
        """
        return cls(parse_quantity(value), is_binary=str(value).endswith("i"))

    def __add__(self, other: Quantity) -> Quantity:
        """The sum, written as the first of the two that is more than nothing."""
        return Quantity(self.amount + other.amount, self.is_binary if self.amount else other.is_binary)

    def __mul__(self, count: int) -> Quantity:
        return Quantity(self.amount * count, self.is_binary)

    def __str__(self) -> str:
        nanos = math.ceil(self.amount.scaleb(_NANO))
        units, part = divmod(nanos, 10**_NANO)
        if self.is_binary and not part and abs(units) >= 1024:
            return _shortest(units, 1024, ("", *_BINARY))
        return _shortest(nanos, 1000, _SUFFIXES) if nanos else "0"


def _shortest(number: int, base: int, suffixes: tuple[str, ...]) -> str:
    """A whole number with the largest suffix that leaves it whole."""
    power = 0
    while power < len(suffixes) - 1 and number % base == 0:
        number //= base
        power += 1
    return f"{number}{suffixes[power]}"
