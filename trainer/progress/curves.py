"""The curves of a training: the samples of its metrics in bounded memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from trainer.progress.samples import MetricId, SampleReader

SERIES_LIMIT = 256
"""Metrics of a TrainJob that are kept: as many as one message may have."""
SAMPLES_LIMIT = 100_000
"""Samples of a metric that are kept, as many as a chart draws; beyond them every second one is dropped."""
TOTAL_LIMIT = 1_000_000
"""Samples of all metrics that are kept; beyond them every second one of each is dropped. They take 24 MB."""


@dataclass(slots=True)
class Curve:
    """The samples of one metric: times in seconds since 1970, steps (-1 for none) and values."""

    times: array[float] = field(default_factory=lambda: array("d"))
    steps: array[float] = field(default_factory=lambda: array("d"))
    """Epochs instead, while no sample has a step; with the first step they are forgotten."""
    values: array[float] = field(default_factory=lambda: array("d"))
    has_steps: bool = False

    def append(self, time: float, step: float, value: float, epoch: float = -1) -> None:
        """Add a sample."""
        if step >= 0:
            self._forget_epochs()
        self.times.append(time)
        self.steps.append(step if self.has_steps else epoch)
        self.values.append(value)

    def extend(self, later: Curve) -> None:
        """Add the samples of another one."""
        if later.has_steps:
            self._forget_epochs()
        self.times.extend(later.times)
        self.steps.extend(later.steps if later.has_steps == self.has_steps else _none(len(later.steps)))
        self.values.extend(later.values)

    def samples(self) -> Iterator[tuple[float, float, float, float]]:
        """Time, step, epoch and value of each, -1 for no step and no epoch."""
        for time, count, value in zip(self.times, self.steps, self.values, strict=True):
            yield (time, count, -1, value) if self.has_steps else (time, -1, count, value)

    def thin_out(self) -> None:
        """Drop every second sample, and keep the last."""
        start = (len(self.times) - 1) % 2
        self.times, self.steps, self.values = self.times[start::2], self.steps[start::2], self.values[start::2]

    def _forget_epochs(self) -> None:
        if not self.has_steps:
            self.has_steps = True
            self.steps = _none(len(self.steps))


def _none(count: int) -> array[float]:
    return array("d", [-1]) * count


class Curves:
    """All metrics of one run of a training, in bounded memory.

    Args:
        total_limit: samples of all metrics that are kept. Default: `TOTAL_LIMIT`.
        with_plain_lines: see `SampleReader`.
    """

    def __init__(self, *, total_limit: int = TOTAL_LIMIT, with_plain_lines: bool = True) -> None:
        self.by_metric: dict[MetricId, Curve] = {}
        self.generation = 0
        """Changes when samples or epochs were dropped, so that what was sent before is to be sent again."""
        self.total = 0
        """Samples of all metrics."""
        self._total_limit = total_limit
        self._with_plain_lines = with_plain_lines
        self._reader = self._new_reader()

    @property
    def parameters(self) -> dict[str, str]:
        """What the run was started with, of which the reporter may have found only a part."""
        return self._reader.parameters

    def take(self, block: bytes) -> bool:
        """Read whole lines of a log; whether there were metrics in it."""
        has_metrics = False
        for metric, time, value, step, epoch in self._reader.read(block):
            at = time.seconds + time.nanoseconds / 1e9
            self.add(metric, at, -1 if step is None else step, float(value), -1 if epoch is None else epoch)
            has_metrics = True
        return has_metrics

    def add(self, metric: MetricId, time: float, step: float, value: float, epoch: float = -1) -> None:
        """Add a sample; those of one metric more than `SERIES_LIMIT` are dropped."""
        curve = self._curve_of(metric)
        if curve is None:
            return
        if len(curve.times) >= SAMPLES_LIMIT:
            self._thin_out(curve)
        self._note_forgotten_epochs(curve, has_steps=step >= 0)
        curve.append(time, step, value, epoch)
        self.total += 1
        if self.total > self._total_limit:
            self.thin_out()

    def extend(self, later: Mapping[MetricId, Curve]) -> None:
        """Add all samples of other curves."""
        for metric, curve in later.items():
            own, count = self._curve_of(metric), len(curve.times)
            if own is None:
                continue
            if len(own.times) + count <= SAMPLES_LIMIT and self.total + count <= self._total_limit:
                self._note_forgotten_epochs(own, has_steps=curve.has_steps)
                own.extend(curve)
                self.total += count
                continue
            for time, step, epoch, value in curve.samples():
                self.add(metric, time, step, value, epoch)

    def thin_out(self) -> None:
        """Drop every second sample of each metric, and keep the last."""
        for curve in self.by_metric.values():
            self._thin_out(curve)

    def thin_to(self, limit: int) -> None:
        """Drop every second sample of the longest metrics, until there are so many of all, or one of each."""
        while self.total > max(limit, len(self.by_metric)):
            self._thin_out(max(self.by_metric.values(), key=lambda curve: len(curve.times)))

    def drain(self) -> dict[MetricId, Curve]:
        """Hand over all samples, and go on without them."""
        taken, self.by_metric = self.by_metric, {}
        self.total = 0
        return taken

    def restart(self) -> None:
        """Begin with another run."""
        self._begin_anew()
        self._reader = self._new_reader()

    def _new_reader(self) -> SampleReader:
        return SampleReader(self._begin_anew, with_plain_lines=self._with_plain_lines)

    def _begin_anew(self) -> None:
        self.drain()
        self.generation += 1

    def _curve_of(self, metric: MetricId) -> Curve | None:
        """That of a metric; None of one too many."""
        curve = self.by_metric.get(metric)
        if curve is None and len(self.by_metric) < SERIES_LIMIT:
            curve = self.by_metric[metric] = Curve()
        return curve

    def _note_forgotten_epochs(self, curve: Curve, *, has_steps: bool) -> None:
        """Begin a new generation where a curve is about to forget its epochs, for what comes has steps."""
        if has_steps and curve.times and not curve.has_steps:
            self.generation += 1

    def _thin_out(self, curve: Curve) -> None:
        before = len(curve.times)
        curve.thin_out()
        self.total += len(curve.times) - before
        self.generation += 1
