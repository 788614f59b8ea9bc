"""Samples of metrics as they are stored: in chunks, of which many small ones become a large one."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from trainer.history.content import compressed, inflated
from trainer.progress.curves import Curve, Curves
from trainer.progress.samples import MetricId

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

BUFFER_LIMIT = 50_000
"""Samples of one training that wait to be written; beyond them every second one is dropped."""
STORED_LIMIT = 400_000
"""Samples of one run that are stored, of all metrics; they take about 4 MB."""
MERGED = 64
"""Chunks after which they become one."""


def chunk_of(curves: Mapping[MetricId, Curve]) -> bytes:
    """The samples as a chunk."""
    return compressed(
        [
            (metric.is_eval, metric.name, list(curve.times), list(curve.steps), list(curve.values))
            for metric, curve in curves.items()
        ]
    )


def curves_of(chunks: Iterable[bytes]) -> Curves:
    """The samples of chunks, in their order.

    Raises:
        ValueError: a chunk is damaged.
    """
    curves = Curves(total_limit=STORED_LIMIT)
    for chunk in chunks:
        for is_eval, name, times, steps, values in inflated(chunk):
            curve = Curve(array("d", times), array("d", steps), array("d", values))
            curves.extend({MetricId(is_eval, name): curve})
    return curves
