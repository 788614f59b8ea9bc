"""What a page has been sent of the curves of a training."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterator

    from trainer.kube.objects import Object
    from trainer.progress.curves import Curves
    from trainer.progress.samples import MetricId

SAMPLES: Final = 200_000
"""Samples of a training in one answer, 8 MB of it; a chart draws half as many."""
PIECE: Final = 10_000
"""Samples in one event, 0.4 MB of it, which take some milliseconds to encode."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """New samples of one metric."""

    metric: MetricId
    times: array[float]
    steps: array[float]
    values: array[float]

    def shown(self) -> Object:
        return {
            "kind": "eval" if self.metric.is_eval else "train",
            "name": self.metric.name,
            "times": list(self.times),
            "steps": list(self.steps),
            "values": list(self.values),
        }


@dataclass(frozen=True, slots=True)
class _News:
    """What a page has not been sent."""

    is_reset: bool
    pieces: list[_Piece]
    has_more: bool
    """Whether there is more that it has not been sent."""

    def encoded(self, more: Object) -> msgspec.Raw:
        # One metric at a time: where a history is encoded, the thread of the event loop gets its turns in between.
        series = b",".join(msgspec.json.encode(piece.shown()) for piece in self.pieces)
        return msgspec.Raw(
            msgspec.json.encode(more | {"isReset": self.is_reset, "hasMore": self.has_more})[:-1]
            + b',"series":['
            + series
            + b"]}"
        )


class CurveReader:
    """What one page has been sent of some curves."""

    def __init__(self, curves: Curves) -> None:
        self._curves = curves
        self._generation = -1
        self._sent: dict[MetricId, int] = {}

    def encoded(self) -> msgspec.Raw | None:
        """What it has not been sent yet, as JSON; None if there is nothing. A million samples take a second."""
        news = self._take(sys.maxsize)
        return news.encoded({}) if news is not None else None

    def pieces(self, more: Object | None = None) -> Iterator[msgspec.Raw]:
        """The same with further members, in pieces of `PIECE` samples, each made when it is asked for.

        It ends after as many samples as there may be, also where the training is quicker than the reader.
        """
        for _ in range(SAMPLES // PIECE + 1):
            news = self._take(PIECE)
            if news is None:
                return
            yield news.encoded(more or {})

    def _take(self, limit: int) -> _News | None:
        is_reset = self._generation != self._curves.generation
        if is_reset:
            self._sent.clear()
            self._generation = self._curves.generation
        pieces = []
        for metric, curve in self._curves.by_metric.items():
            start = self._sent.get(metric, 0)
            end = min(len(curve.times), start + limit)
            if end > start:
                self._sent[metric] = end
                limit -= end - start
                pieces.append(_Piece(metric, curve.times[start:end], curve.steps[start:end], curve.values[start:end]))
        if not pieces and not is_reset:
            return None
        has_more = any(self._sent.get(metric, 0) < len(curve.times) for metric, curve in self._curves.by_metric.items())
        return _News(is_reset, pieces, has_more)
