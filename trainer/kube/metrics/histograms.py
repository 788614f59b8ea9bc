"""Buckets of controller-runtime and client-go, and a histogram for what is observed so often that it must cost little.

An observation takes a tenth of what one of prometheus_client takes, as it takes no locks: only one thread, that of the
event loop, may observe. Any thread may scrape, and may then miss the latest observation in one of its numbers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate
from operator import mul

from prometheus_client import CollectorRegistry
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

WORK = tuple(accumulate([10] * 11, mul, initial=10e-9))
"""Seconds, of work queues and webhooks; multiplied as in Go, since a literal 1e-05 would be another `le` label."""

RECONCILE = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9,
    1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
)  # fmt: skip
"""Seconds."""

REQUEST = (0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60)
"""Seconds, of requests to the API server."""


class QuickHistogram(Collector):
    """A histogram with labels.

    The values of its labels must be few; the buckets are ascending upper bounds without infinity.
    """

    def __init__(
        self, name: str, text: str, labels: Sequence[str], *, buckets: Sequence[float], registry: CollectorRegistry
    ) -> None:
        self._name = name
        self._text = text
        self._labels = tuple(labels)
        self._bounds = tuple(buckets)
        self._les = (*map(floatToGoString, self._bounds), "+Inf")
        self._bound: dict[tuple[str, ...], BoundHistogram] = {}
        registry.register(self)

    def labels(self, *values: str) -> BoundHistogram:
        """The series of these label values, present from now on; each call looks it up."""
        if values not in self._bound:
            self._bound[values] = BoundHistogram(self._bounds)
        return self._bound[values]

    def describe(self) -> Iterator[HistogramMetricFamily]:
        """Name, help and labels."""
        yield HistogramMetricFamily(self._name, self._text, labels=self._labels)

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """The present values."""
        (family,) = self.describe()
        for values, bound in tuple(self._bound.items()):
            buckets = list(zip(self._les, accumulate(tuple(bound.counts)), strict=True))
            family.add_metric(values, buckets, bound.total)
        yield family


class BoundHistogram:
    """Series of a histogram with their labels bound."""

    __slots__ = ("_bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Count one value."""
        self.counts[bisect_left(self._bounds, value)] += 1
        self.total += value
