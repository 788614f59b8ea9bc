"""Whether a figure of a process grows while trainings come and go.

While they run, what a process holds follows how many there are. At rest, when all of them are gone, it holds what it
keeps for good. What settles, such as a cache that fills or what an allocator keeps of peaks, grows ever more slowly; a
leak goes on. So the later half of the rests is judged, and five rests at least.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from itertools import combinations
from typing import Final

HOUR: Final = 3600.0
LIMIT: Final = 0.01
"""Growth in an hour, as a share of the figure, above which it is a leak."""
BOUND: Final = 0.1
"""Growth in an hour, as a share of the figure, that a run must be able to find in order to call the figure flat."""
BOUND_STEPS: Final = 4
"""The same in steps of the figure, where that is more. An hour, half of which is judged, finds two, and more by as much
as the rests differ."""
FEWEST: Final = 5
"""Rests: with four, nothing but growth at each could prove anything."""
_CHANCE: Final = 0.05
"""Of what does not grow to seem to."""


class Verdict(StrEnum):
    """What a run says of a figure."""

    LEAK = "leak"
    """Growth above the limit is proved."""
    FLAT = "flat"
    """It is not, and growth above the bound would have been."""
    UNKNOWN = "cannot tell"
    """It is not, and growth above the bound might not have been."""


@dataclass(frozen=True, slots=True)
class Trend:
    """How a figure has developed over the rests that are judged.

    Any two rests give a slope. Their median is the estimate (Theil and Sen). What is proved is the lowest of them, but
    for as many as may be lower by chance (Kendall): one of the ten of five rests. That is a leak where it exceeds the
    limit. A steady leak raises all slopes alike, so one would have been proved from the limit plus the distance
    between estimate and proof. Slopes are growth in an hour, as a share of the figure at the first of the rests.
    """

    level: float
    """The figure at the last rest."""
    slope: float
    """The estimate."""
    proved: float
    """What the slope is at least."""
    limit: float
    """What must be proved for a leak: 1 %, or one step of the figure from the first of the rests to the last."""
    bound: float
    """What a run must be able to find: 10 %, or four steps of the figure in an hour."""

    @property
    def smallest_leak(self) -> float:
        """The slope from which on this run calls it a leak."""
        return self.limit + self.slope - self.proved

    @property
    def verdict(self) -> Verdict:
        """What is said of the figure."""
        if self.proved > self.limit:
            return Verdict.LEAK
        return Verdict.FLAT if self.smallest_leak <= self.bound else Verdict.UNKNOWN

    @property
    def is_dubious(self) -> bool:
        """Whether it seems to grow by more than the bound, and the run can neither prove nor exclude it."""
        return self.verdict is Verdict.UNKNOWN and self.slope > self.bound


def trend(rests: Sequence[tuple[float, Sequence[float]]], step: float = 0.0) -> Trend:
    """The trend of a figure.

    Args:
        rests: the time of each in seconds, and the values there, of which the median counts.
        step: by how much the figure differs between rests, or goes on settling, without a leak.

    Raises:
        ValueError: there are too few rests.
    """
    if len(rests) < FEWEST:
        raise ValueError(f"{len(rests)} rests: a trend takes {FEWEST}")
    judged = [(moment, statistics.median(values)) for moment, values in rests[-max(FEWEST, (len(rests) + 1) // 2) :]]
    (first, begin), (last, end) = judged[0], judged[-1]
    unit = max(begin, 1.0) / HOUR
    slopes = sorted(
        (after - value) / (later - moment) / unit for (moment, value), (later, after) in combinations(judged, 2)
    )
    return Trend(
        level=end,
        slope=statistics.median(slopes),
        proved=slopes[_chance_falls(len(judged))],
        limit=max(LIMIT, step / (last - first) / unit),
        bound=max(BOUND, BOUND_STEPS * step / HOUR / unit),
    )


@cache
def _chance_falls(count: int) -> int:
    """Of the pairs of so many values: how many may fall where growth is proved.

    That is the most so that not more than 5 % of all orders of the values have so few. An order of `size` values is
    one of the others with a value put before 0 to `size - 1` of them, each of which is a pair that falls.
    """
    orders = [1]
    for size in range(2, count + 1):
        longer = [0] * (len(orders) + size - 1)
        for falls, many in enumerate(orders):
            for more in range(size):
                longer[falls + more] += many
        orders = longer
    few = 0
    while sum(orders[: few + 2]) <= _CHANCE * sum(orders):
        few += 1
    return few
