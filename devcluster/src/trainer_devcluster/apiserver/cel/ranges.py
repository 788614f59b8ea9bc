"""Ranges: what is known about a size or a cost before an expression is evaluated."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

LARGEST: Final = 2**64 - 1
"""What stands for "no bound"; sums and products stop here."""


@dataclass(frozen=True, slots=True)
class Range:
    """The smallest and the largest value that a number can have; both between 0 and `LARGEST`."""

    least: int
    most: int

    def __add__(self, other: Range) -> Range:
        return Range(min(self.least + other.least, LARGEST), min(self.most + other.most, LARGEST))

    def __mul__(self, other: Range) -> Range:
        return Range(min(self.least * other.least, LARGEST), min(self.most * other.most, LARGEST))

    def __or__(self, other: Range) -> Range:
        """Whatever is in one of the two."""
        return Range(min(self.least, other.least), max(self.most, other.most))

    def scaled(self, factor: float) -> Range:
        """Multiplied by a factor, and rounded up as the API server rounds."""
        return Range(_scaled(self.least, factor), _scaled(self.most, factor))


def exactly(value: int) -> Range:
    """One value only."""
    return Range(value, value)


UNKNOWN: Final = Range(0, LARGEST)


def _scaled(value: int, factor: float) -> int:
    product = float(value) * factor
    return LARGEST if product >= float(LARGEST) else math.ceil(product)
