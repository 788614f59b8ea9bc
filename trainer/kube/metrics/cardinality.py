"""Bounds for labels whose values users choose: each value is a series that Prometheus keeps, and so is each mistake.

A metric has at most `LIMIT` label sets, which its namespaces share: one that has many already gets no more while others
could need what is left, and what it counts beyond that goes to `OTHER` under its own name. A namespace that comes late
finds room, whatever the others do. Sums stay right.

A series is given back when nothing that it counts is left. It begins with 0 if it returns, which `rate()` and
`increase()` take for the restart of a process, so that nothing is counted twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import Counter

OTHER = "other"
"""Value of labels beyond the limit."""

LIMIT = 2000
"""Label sets of one metric. Default: 2000, some hundred kilobytes at each scrape."""

LONGEST = 320
"""Characters of a label value; namespace, slash and name of an object have at most 317."""

_RESERVE = 19
"""A namespace may have one label set for so many that are free: 100 of 2000 if it is alone, 51 beside 19 that take all
they get. Half is then left for whoever comes."""


class Shares:
    """Divides the label sets of one metric among namespaces: a dynamic threshold, as switches use for their buffers.

    `limit` is that of all namespaces together.
    """

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._taken: dict[str, int] = {}

    def take(self, namespace: str) -> bool:
        """Take a label set for a namespace, unless it has its share already."""
        if self._taken.get(namespace, 0) * _RESERVE >= self._free:
            return False
        return self.take_rest(namespace)

    def take_rest(self, namespace: str) -> bool:
        """Take the label set in which a namespace counts what is beyond its share, unless none is free."""
        if self._free <= 0:
            return False
        self._free -= 1
        self._taken[namespace] = self._taken.get(namespace, 0) + 1
        return True

    def release(self, namespace: str) -> None:
        """Return a label set."""
        self._free += 1
        left = self._taken[namespace] - 1
        if left:
            self._taken[namespace] = left
        else:
            del self._taken[namespace]


@dataclass(slots=True)
class _Bound:
    values: tuple[str, ...]
    counter: Counter
    is_idle: bool = False


class BoundedCounter:
    """A counter with at most so many label sets, which are bound once.

    The first label of the counter is the namespace. `folded` says for each label whether it becomes `OTHER` beyond the
    limit; the values of the rest must be few.
    """

    def __init__(self, counter: Counter, folded: Sequence[bool], limit: int = LIMIT) -> None:
        self._counter = counter
        self._folded = tuple(folded)
        self._shares = Shares(limit)
        self._bound: dict[tuple[str, ...], _Bound] = {}

    def labels(self, *values: str) -> Counter:
        """The series of these label values, or the one that stands for it."""
        series = self._bound.get(values)
        if series is not None:
            series.is_idle = False
            return series.counter
        namespace = values[0]
        if self._shares.take(namespace):
            return self._bind(values)
        folded = tuple(map(_other, values, self._folded))
        rest = (namespace, *folded[1:])
        series = self._bound.get(rest)
        if series is not None:
            series.is_idle = False
            return series.counter
        if self._shares.take_rest(namespace):
            return self._bind(rest)
        return self._counter.labels(*folded)

    def remove_stale(self, is_alive: Callable[[tuple[str, ...]], bool]) -> None:
        """Remove the series that nothing has asked for since the last call, and of whose labels nothing is alive."""
        for values, series in tuple(self._bound.items()):
            if series.is_idle and not is_alive(values):
                del self._bound[values]
                self._shares.release(values[0])
                self._counter.remove(*series.values)
            series.is_idle = True

    def _bind(self, values: tuple[str, ...]) -> Counter:
        cut = tuple(value[:LONGEST] for value in values)
        series = self._bound[values] = _Bound(cut, self._counter.labels(*cut))
        return series.counter


def bounded_counts(
    counts: Mapping[tuple[str, ...], int], folded: Sequence[bool], limit: int = LIMIT
) -> dict[tuple[str, ...], int]:
    """The values of a gauge by its labels, with those beyond the limit together, as `BoundedCounter` does it.

    The same for the same counts in any order, so that replicas agree.
    """
    shares = Shares(limit)
    bounded: dict[tuple[str, ...], int] = {}
    for values, count in sorted(counts.items()):
        shown = tuple(value[:LONGEST] for value in values)
        if not shares.take(values[0]):
            everybody = tuple(map(_other, values, folded))
            shown = (values[0], *everybody[1:])
            if shown not in bounded and not shares.take_rest(values[0]):
                shown = everybody
        bounded[shown] = bounded.get(shown, 0) + count
    return bounded


def _other(value: str, is_folded: bool) -> str:
    return OTHER if is_folded else value
