"""Whether a figure of a process grows from rest to rest.

While trainings come and go, what a process holds follows how many there are. At rest, when all of them are gone, it
holds what it keeps for good, which grows where something leaks.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

HOUR: Final = 3600.0
LIMIT: Final = 0.01
"""Growth in an hour, as a share of the figure, above which it is a leak."""
FEWEST: Final = 3
"""Rests that tell growth from a step that happens once, such as a module that is loaded late."""


@dataclass(frozen=True, slots=True)
class Trend:
    """How a figure has developed between the first rest and the last."""

    level: float
    """The figure at the last rest."""
    slope: float
    """Growth per hour, as a share of the figure at the first rest."""
    least: float
    """The least such slope between two rests in a row, from the largest value of one to the smallest of the next."""
    resolution: float
    """The slope that one step of the figure would be."""

    @property
    def is_leak(self) -> bool:
        """Whether it has grown by more than the limit from each rest to the next, and by more than one step in all."""
        return self.least > LIMIT and self.slope > self.resolution

    @property
    def smallest_leak(self) -> float:
        """The slope from which on this run calls it a leak: the more the figure differs between rests, the more."""
        return max(LIMIT + self.slope - self.least, self.resolution)


def trend(rests: Sequence[tuple[float, Sequence[float]]], resolution: float = 0.0) -> Trend:
    """The trend of a figure.

    Args:
        rests: the time of each in seconds, and the values there.
        resolution: the least step of the figure: what is smaller cannot be told from none.

    Raises:
        ValueError: there are too few rests.
    """
    if len(rests) < FEWEST:
        raise ValueError(f"{len(rests)} rests: a trend takes {FEWEST}")
    (first, firsts), (last, lasts) = rests[0], rests[-1]
    begin, end = statistics.median(firsts), statistics.median(lasts)
    in_an_hour = HOUR / max(begin, 1.0)
    slope = (end - begin) / (last - first) * in_an_hour
    steps = (
        (min(values) - max(before)) / (moment - former) * in_an_hour
        for (former, before), (moment, values) in pairwise(rests)
    )
    return Trend(end, slope, min(steps), resolution / (last - first) * in_an_hour)
