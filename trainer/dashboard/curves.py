"""What a page has been sent of the curves of a training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import anyio.to_thread
import msgspec

if TYPE_CHECKING:
    from array import array

    from trainer.kube.objects import Object
    from trainer.progress.curves import Curves
    from trainer.progress.samples import MetricId

SAMPLES: Final = 200_000
"""Samples of a training in one answer, 8 MB of it, which a slow reader holds in memory; a chart draws half as many."""
_MANY: Final = 5000
"""Samples whose encoding takes some milliseconds, which is about what another thread costs."""


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

    def encoded(self, more: Object) -> msgspec.Raw:
        # One metric at a time: other threads, such as that of the event loop, get their turns in between.
        series = b",".join(msgspec.json.encode(piece.shown()) for piece in self.pieces)
        return msgspec.Raw(
            msgspec.json.encode(more | {"isReset": self.is_reset})[:-1] + b',"series":[' + series + b"]}"
        )


class CurveReader:
    """What one page has been sent of some curves."""

    def __init__(self, curves: Curves) -> None:
        self._curves = curves
        self._generation = -1
        self._sent: dict[MetricId, int] = {}

    def encoded(self) -> msgspec.Raw | None:
        """What it has not been sent yet, as JSON; None if there is nothing. A million samples take a second."""
        news = self._take()
        return news.encoded({}) if news is not None else None

    async def encoded_news(self, more: Object | None = None) -> msgspec.Raw | None:
        """The same with further members; a million samples are encoded beside the event loop."""
        news = self._take()
        if news is None:
            return None
        if sum(len(piece.times) for piece in news.pieces) < _MANY:
            return news.encoded(more or {})
        return await anyio.to_thread.run_sync(news.encoded, more or {})

    def _take(self) -> _News | None:
        is_reset = self._generation != self._curves.generation
        if is_reset:
            self._sent.clear()
            self._generation = self._curves.generation
        pieces = []
        for metric, curve in self._curves.by_metric.items():
            start = self._sent.get(metric, 0)
            self._sent[metric] = end = len(curve.times)
            if end > start:
                pieces.append(_Piece(metric, curve.times[start:], curve.steps[start:], curve.values[start:]))
        return _News(is_reset, pieces) if pieces or is_reset else None
