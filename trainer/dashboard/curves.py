"""What a page has been sent of the curves of a training."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainer.kube.objects import Object
    from trainer.progress.curves import Curves
    from trainer.progress.samples import MetricId


class CurveReader:
    """What one page has been sent of some curves."""

    def __init__(self, curves: Curves) -> None:
        self._curves = curves
        self._generation = -1
        self._sent: dict[MetricId, int] = {}

    def news(self) -> Object | None:
        """What it has not been sent yet; None if there is nothing."""
        is_reset = self._generation != self._curves.generation
        if is_reset:
            self._sent.clear()
            self._generation = self._curves.generation
        series = []
        for metric, curve in self._curves.by_metric.items():
            start = self._sent.get(metric, 0)
            self._sent[metric] = end = len(curve.times)
            if end > start:
                kind = "eval" if metric.is_eval else "train"
                points = {name: list(getattr(curve, name)[start:]) for name in ("times", "steps", "values")}
                series.append({"kind": kind, "name": metric.name} | points)
        return {"isReset": is_reset, "series": series} if series or is_reset else None
