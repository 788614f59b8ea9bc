"""Whether a figure of a process grows: a slope by robust regression, and how sure it is.

Samples are put into blocks of equal time, of which the medians count: neighbouring samples resemble each other, and a
peak of one sample is no growth. The slope is that of Theil and Sen, the median of the slopes between all pairs of
blocks. Its lower bound is that of Sen (1968), from the variance of Kendall's statistic.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

BLOCKS: Final = 12
HOUR: Final = 3600.0
LIMIT: Final = 0.01
"""Growth in an hour, as a share of the figure, above which it is a leak."""
_NORMAL_QUANTILE: Final = 3.09
"""Of 0.999: of a thousand figures that do not grow, one is taken for growing."""


@dataclass(frozen=True, slots=True)
class Trend:
    """How a figure has developed."""

    level: float
    """Median of the figure."""
    slope: float
    """Growth per hour, as a share of the level."""
    lower: float
    """The least slope that fits the samples and the resolution of the figure."""
    resolution: float
    """The slope that one step of the figure would be."""

    @property
    def is_leak(self) -> bool:
        """Whether it grows by more than the limit even at its least."""
        return self.lower > LIMIT

    @property
    def smallest_leak(self) -> float:
        """The slope from which on this run calls it a leak: the more the figure wanders, the more it takes."""
        return LIMIT + self.slope - self.lower


def trend(samples: Sequence[tuple[float, float]], resolution: float = 0.0) -> Trend:
    """The trend of a figure.

    Args:
        samples: time in seconds and value, in order of time.
        resolution: the least step of the figure: what is smaller cannot be told from none.

    Raises:
        ValueError: there are too few samples for a bound.
    """
    blocks = _blocks(samples)
    if len(blocks) < BLOCKS:
        raise ValueError(f"{len(samples)} samples: each of {BLOCKS} equal parts of the time needs one")
    slopes = sorted((later[1] - former[1]) / (later[0] - former[0]) for former, later in combinations(blocks, 2))
    count = len(blocks)
    deviation = math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    lowest = slopes[math.floor((len(slopes) - _NORMAL_QUANTILE * deviation) / 2)]
    slope = statistics.median(slopes)
    level = statistics.median(value for _, value in samples)
    step = resolution / (samples[-1][0] - samples[0][0])
    in_an_hour = HOUR / max(level, 1.0)
    return Trend(level, slope * in_an_hour, min(lowest, slope - step) * in_an_hour, step * in_an_hour)


def _blocks(samples: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Middle and median value of each block that has samples."""
    if not samples:
        return []
    first, length = samples[0][0], (samples[-1][0] - samples[0][0]) / BLOCKS
    if length <= 0:
        return []
    found: dict[int, list[float]] = {}
    for moment, value in samples:
        found.setdefault(min(int((moment - first) / length), BLOCKS - 1), []).append(value)
    return [(first + (number + 0.5) * length, statistics.median(values)) for number, values in sorted(found.items())]
