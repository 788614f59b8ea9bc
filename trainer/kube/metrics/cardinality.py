"""Bounds for labels whose values users choose: each value is a series that Prometheus keeps, and so is each mistake.

What comes first has series of its own, the rest is counted under `OTHER`, so that sums stay right. A series that counts
is never taken away while the process lives: `rate()` would take its return for a restart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prometheus_client import Counter

OTHER = "other"
"""Value of labels beyond the limit."""

LIMIT = 2000
"""Label sets of one metric. Default: 2000, some hundred kilobytes at each scrape."""

LONGEST = 320
"""Characters of a label value; namespace, slash and name of an object have at most 317."""


class BoundedCounter:
    """A counter with at most so many label sets, which are bound once.

    Args:
        counter: with its labels unbound.
        folded: for each label whether it becomes `OTHER` beyond the limit; the values of the rest must be few.
        limit: how many label sets there may be before. Default: 2000.
    """

    def __init__(self, counter: Counter, folded: Sequence[bool], limit: int = LIMIT) -> None:
        self._counter = counter
        self._folded = tuple(folded)
        self._limit = limit
        self._bound: dict[tuple[str, ...], Counter] = {}

    def labels(self, *values: str) -> Counter:
        """The series of these label values, or the one that stands for it."""
        bound = self._bound.get(values)
        if bound is not None:
            return bound
        if len(self._bound) >= self._limit:
            return self._counter.labels(*map(_other, values, self._folded))
        bound = self._bound[values] = self._counter.labels(*(value[:LONGEST] for value in values))
        return bound


class BoundedValues:
    """The values of one label: the first so many stay, later ones become `OTHER`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: set[str] = set()

    def of(self, value: str) -> str:
        """What the label says for this value."""
        if value not in self._known:
            if len(self._known) >= self._limit:
                return OTHER
            self._known.add(value)
        return value


def _other(value: str, is_folded: bool) -> str:
    return OTHER if is_folded else value
