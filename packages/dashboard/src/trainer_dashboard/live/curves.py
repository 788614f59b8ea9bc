"""What a page has been sent of the curves of a training."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Final

import msgspec

from trainer.kube.objects import Object
from trainer.progress.curves import Curve, Curves
from trainer.progress.samples import MetricId

SAMPLES: Final = 200_000
"""Samples of a training in one answer, 8 MB of it; a chart draws half as many."""
PIECE: Final = 10_000
"""Samples in one event, 0.4 MB of it, which take some milliseconds to encode."""


class CurveReader:
    """What one page has been sent of some curves."""

    def __init__(self, curves: Curves) -> None:
        self._curves = curves
        self._generation = -1
        self._sent: dict[MetricId, int] = {}

    def encoded(self) -> msgspec.Raw | None:
        """What it has not been sent yet, as JSON; None if there is nothing. A million samples take a second."""
        return self._news(sys.maxsize, {})

    def pieces(self, more: Object | None = None) -> Iterator[msgspec.Raw]:
        """The same with further members, in pieces of `PIECE` samples, each made when it is asked for.

        It ends after as many samples as there may be, also where the training is quicker than the reader.
        """
        for _ in range(SAMPLES // PIECE + 1):
            news = self._news(PIECE, more or {})
            if news is None:
                return
            yield news

    def _news(self, limit: int, more: Object) -> msgspec.Raw | None:
        is_reset = self._generation != self._curves.generation
        if is_reset:
            self._sent.clear()
            self._generation = self._curves.generation
        series = []
        for metric, curve in self._curves.by_metric.items():
            start = self._sent.get(metric, 0)
            end = min(len(curve.times), start + limit)
            if end > start:
                self._sent[metric] = end
                limit -= end - start
                # One metric at a time: where a history is encoded, the thread of the event loop gets its turns between.
                series.append(_encoded(metric, curve, slice(start, end)))
        if not series and not is_reset:
            return None
        has_more = any(self._sent.get(metric, 0) < len(curve.times) for metric, curve in self._curves.by_metric.items())
        head = msgspec.json.encode(more | {"isReset": is_reset, "hasMore": has_more})
        return msgspec.Raw(b'%b,"series":[%b]}' % (head[:-1], b",".join(series)))


def _encoded(metric: MetricId, curve: Curve, part: slice) -> bytes:
    return msgspec.json.encode(
        {
            "kind": metric.kind,
            "name": metric.name,
            "times": list(curve.times[part]),
            "steps": list(curve.steps[part]),
            "values": list(curve.values[part]),
            "hasSteps": curve.has_steps,
        }
    )
