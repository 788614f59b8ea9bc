"""Histogram buckets of controller-runtime and client-go, in seconds unless the name says bytes."""

from __future__ import annotations


def _powers(start: float, factor: float, count: int) -> tuple[float, ...]:
    """By repeated multiplication as in Go, since a literal 1e-05 would be another `le` label than 9.99e-06."""
    values = [start]
    while len(values) < count:
        values.append(values[-1] * factor)
    return tuple(values)


WORK = _powers(10e-9, 10, 12)
"""Work queues and webhooks."""

RECONCILE = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9,
    1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
)  # fmt: skip

REQUEST = (0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60)
"""Requests to the API server, and the rate limiter before them."""

REQUEST_BYTES = (64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216)
