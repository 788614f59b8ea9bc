"""The curves of a training: the samples of its metrics in bounded memory, and what a page has got of them."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trainer.progress.samples import MetricId, MetricSamples

if TYPE_CHECKING:
    from trainer.kube.objects import Object
    from trainer.progress.samples import Sample

SERIES_LIMIT = 256
"""Metrics of a TrainJob that are shown: as many as one message may have."""
SAMPLES_LIMIT = 20_000
"""Samples of a metric that are kept; beyond them every second one is dropped."""


@dataclass(slots=True)
class Curve:
    """The samples of one metric: times in seconds since 1970, steps (-1 for none) and values."""

    times: array[float] = field(default_factory=lambda: array("d"))
    steps: array[float] = field(default_factory=lambda: array("d"))
    values: array[float] = field(default_factory=lambda: array("d"))

    def append(self, sample: Sample) -> None:
        """Add a sample."""
        self.times.append(sample.time.seconds + sample.time.nanoseconds / 1e9)
        self.steps.append(-1 if sample.step is None else sample.step)
        self.values.append(float(sample.value))

    def thin_out(self) -> None:
        """Drop every second sample, and keep the last."""
        start = (len(self.times) - 1) % 2
        self.times, self.steps, self.values = self.times[start::2], self.steps[start::2], self.values[start::2]


class Curves:
    """All metrics of one run of a training, in bounded memory."""

    def __init__(self) -> None:
        self.by_metric: dict[MetricId, Curve] = {}
        self.generation = 0
        """Changes when samples were dropped, so that what was sent before is to be sent again."""
        self._samples = MetricSamples()

    def take(self, block: bytes) -> bool:
        """Read whole lines of a log; whether there were metrics in it."""
        new = self._samples.take(block)
        self._samples.series.clear()
        for sample in new:
            self._add(sample)
        return bool(new)

    def restart(self) -> None:
        """Begin with another run."""
        self.by_metric.clear()
        self._samples = MetricSamples()
        self.generation += 1

    def _add(self, sample: Sample) -> None:
        metric = MetricId(sample.is_eval, sample.name)
        curve = self.by_metric.get(metric)
        if curve is None:
            if len(self.by_metric) >= SERIES_LIMIT:
                return
            curve = self.by_metric[metric] = Curve()
        if len(curve.times) >= SAMPLES_LIMIT:
            curve.thin_out()
            self.generation += 1
        curve.append(sample)


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
