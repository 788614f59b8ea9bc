"""The curve of one metric on the TrainJob itself, by annotations, for controllers that judge trainings.

`CURVE_OF` names the metric; the manager then keeps its curve in `CURVE`, bounded, and says there when no further sample
comes. Logs go with their pods, and the status has the last values alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

import msgspec

CURVE_OF: Final = "trainer.kubeflow.org/trainer-status-curve-of"
"""Annotation of a TrainJob: name of the metric, which is looked for in the evaluation metrics, then the others."""
CURVE: Final = "trainer.kubeflow.org/trainer-status-curve"
"""Annotation that the manager writes: `MetricCurve` as JSON."""
MOST_POINTS: Final = 128
"""Points of a curve that are kept."""


class Point(msgspec.Struct, frozen=True, array_like=True):
    """One value."""

    step: int
    """The step; the epoch where the training reports no steps, else the number of the report, from 1."""
    value: str
    """The number, digit by digit as it was reported."""


class _Text(msgspec.Struct, omit_defaults=True, rename="camel"):
    metric: str
    points: list[Point]
    is_final: bool = False


_DECODER: Final = msgspec.json.Decoder(_Text)


@dataclass(frozen=True, slots=True)
class MetricCurve:
    """The curve of a metric over the whole training; a training that goes back, as from a checkpoint, overwrites it."""

    metric: str
    points: tuple[Point, ...] = ()
    """By step. Beyond `MOST_POINTS` every second one is dropped, but never the first, last, least and greatest."""
    is_final: bool = False
    """Whether the training has ended, and all that it has reported is in it."""

    @classmethod
    def of(cls, annotations: Mapping[str, str], metric: str) -> Self:
        """The curve of a TrainJob; empty where it has none of this metric, or one that cannot be read."""
        try:
            text = _DECODER.decode(annotations.get(CURVE, ""))
        except (msgspec.DecodeError, RecursionError):
            return cls(metric)
        if text.metric != metric or not all(math.isfinite(number_of(point.value)) for point in text.points):
            return cls(metric)
        return cls(metric, tuple(text.points), text.is_final)

    def to_text(self) -> str:
        """The value of the annotation."""
        return msgspec.json.encode(_Text(self.metric, list(self.points), self.is_final)).decode()

    def with_point(self, step: int, value: str) -> Self:
        """The curve after another value; values from later steps, which were lost, go."""
        kept = self.points
        while kept and kept[-1].step >= step:
            kept = kept[:-1]
        return type(self)(self.metric, _bounded((*kept, Point(step, value))))


def number_of(value: str) -> float:
    """The number of a value; not a number where it is none."""
    try:
        return float(value)
    except ValueError:
        return math.nan


def _bounded(points: tuple[Point, ...]) -> tuple[Point, ...]:
    if len(points) <= MOST_POINTS:
        return points
    by_value = sorted(range(len(points)), key=lambda index: number_of(points[index].value))
    kept = {0, len(points) - 1, by_value[0], by_value[-1]}
    return tuple(point for index, point in enumerate(points) if index in kept or index % 2)
