"""The curve of one metric on the TrainJob itself, by annotations, for controllers that judge trainings.

`CURVE_OF` names the metric; the manager then keeps its curve in `CURVE`, bounded, and says there when no further sample
comes. Logs go with their pods, and the status has the last values alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from statistics import median_low
from typing import Annotated, Final, NamedTuple, Self

import msgspec

CURVE_OF: Final = "trainer.kubeflow.org/trainer-status-curve-of"
"""On a TrainJob: name of the metric whose curve it shows, looked for in the evaluation metrics, then the others."""
CURVE: Final = "trainer.kubeflow.org/trainer-status-curve"
"""On a TrainJob, by the manager: the curve of the metric that `trainer-status-curve-of` names, as JSON."""
MOST_POINTS: Final = 128
"""Points of a curve that are kept."""
LONGEST: Final = 64
"""Most characters of the name of a metric, and of a value."""

_NUMBER: Final = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")


class Unit(IntEnum):
    """What the steps of a curve count; a greater unit says more."""

    REPORTS = 0
    """Reports of the metric."""
    EPOCHS = 1
    STEPS = 2


class Origin(NamedTuple):
    """Where the values of a curve are from, all of them from the greatest that has reported."""

    is_message: bool = True
    """Whether they were reported as such; false: recognised in ordinary lines of the log."""
    is_eval: bool = False
    """Whether they were measured on the evaluation data."""
    unit: Unit = Unit.STEPS


class Reading(NamedTuple):
    """How far what a training reports is in a curve."""

    pod: str = ""
    """Uid of the pod whose log was read; "": the values were posted."""
    time: str = ""
    """When the last value was reported, by the clock of that pod; RFC 3339."""


class Point(msgspec.Struct, frozen=True, array_like=True):
    """One value."""

    step: Annotated[int, msgspec.Meta(ge=0, le=2**53)]
    """The step; the epoch where the training reports no steps, else the number of the report, from 1."""
    value: str
    """The number, digit by digit as it was reported."""


class _Text(msgspec.Struct, omit_defaults=True, rename="camel"):
    metric: str
    points: list[Point] = []
    is_final: bool = False
    is_plain: bool = False
    is_eval: bool = False
    unit: str = "steps"
    pod: str = ""
    time: str = ""
    uid: str = ""


class _End(msgspec.Struct, rename="camel"):
    metric: str
    is_final: bool = False
    uid: str = ""


_DECODER: Final = msgspec.json.Decoder(_Text)
_END_DECODER: Final = msgspec.json.Decoder(_End)
_MESSAGES: Final = Origin()
_NOTHING: Final = Reading()
_UNITS: Final = {"reports": Unit.REPORTS, "epochs": Unit.EPOCHS, "steps": Unit.STEPS}
_WORDS: Final = {unit: word for word, unit in _UNITS.items()}


@dataclass(frozen=True, slots=True)
class MetricCurve:
    """The curve of a metric over the whole training; a training that goes back, as from a checkpoint, overwrites it."""

    metric: str
    points: tuple[Point, ...] = ()
    """By step. Of more than `MOST_POINTS` those go that are closest to others, but never the first, last, least and
    greatest."""
    is_final: bool = False
    """Whether the training has ended, and all that it has reported is in it."""
    origin: Origin = _MESSAGES
    reading: Reading = _NOTHING

    @classmethod
    def of(cls, annotations: Mapping[str, str], metric: str, uid: str = "") -> Self:
        """The curve of a TrainJob; empty where it has none of this metric, or one that cannot be read.

        With its `uid` that of another one is none: who copies a TrainJob copies its annotations.
        """
        try:
            text = _DECODER.decode(annotations.get(CURVE, ""))
        except (msgspec.DecodeError, RecursionError):
            return cls(metric)
        unit = _UNITS.get(text.unit)
        are_numbers = all(math.isfinite(number_of(point.value)) for point in text.points)
        are_in_order = all(before.step < after.step for before, after in pairwise(text.points))
        if text.metric != metric or _is_of_another(text.uid, uid) or unit is None:
            return cls(metric)
        if not are_numbers or not are_in_order:
            return cls(metric)
        origin = Origin(not text.is_plain, text.is_eval, unit)
        return cls(metric, _bounded(text.points), text.is_final, origin, Reading(text.pod, text.time))

    def to_text(self, uid: str = "") -> str:
        """The value of the annotation of a TrainJob with this uid."""
        (is_message, is_eval, unit), points = self.origin, list(self.points)
        text = _Text(self.metric, points, self.is_final, not is_message, is_eval, _WORDS[unit], *self.reading, uid)
        return msgspec.json.encode(text).decode()

    def with_point(
        self, step: int, value: str, *, origin: Origin | None = None, reading: Reading | None = None
    ) -> Self:
        """The curve after another value; values from later steps, which were lost, go.

        What is no finite number changes nothing.

        Args:
            step: from 0.
            value: the number as it was reported, of at most `LONGEST` characters.
            origin: where it is from: values of a lesser origin go, and one of a lesser origin is left out. Default:
                that of the curve.
            reading: how far is read with it. Default: that of the curve.
        """
        origin, reading = origin or self.origin, reading or self.reading
        kept = self.points
        if not math.isfinite(number_of(value)) or (kept and origin < self.origin):
            return self
        if origin != self.origin:
            kept = ()
        while kept and kept[-1].step >= step:
            kept = kept[:-1]
        return type(self)(self.metric, _bounded((*kept, Point(step, value))), False, origin, reading)


def shows_final_curve(annotations: Mapping[str, str], uid: str = "") -> bool:
    """Whether a TrainJob shows the final curve of the metric that its annotation names; for `uid` see `of`."""
    if CURVE_OF not in annotations or CURVE not in annotations:
        return False
    try:
        end = _END_DECODER.decode(annotations[CURVE])
    except (msgspec.DecodeError, RecursionError):
        return False
    return end.is_final and end.metric == annotations[CURVE_OF] and not _is_of_another(end.uid, uid)


def number_of(value: str) -> float:
    """The number of a value; not a number where it is none, or longer than any that is reported."""
    return float(value) if len(value) <= LONGEST and _NUMBER.fullmatch(value) else math.nan


def _is_of_another(uid: str, own: str) -> bool:
    return bool(uid and own) and uid != own


def _bounded(points: Sequence[Point]) -> tuple[Point, ...]:
    """The points without those that are closest to others, so that steps stay about equally far apart."""
    while len(points) > MOST_POINTS:
        last = len(points) - 1
        by_value = sorted(range(len(points)), key=lambda index: number_of(points[index].value))
        kept = {0, last, by_value[0], by_value[-1]}
        inner = [index for index in range(1, last) if index not in kept]
        gaps = {index: points[index + 1].step - points[index - 1].step for index in inner}
        widest = median_low(gaps.values())
        dropped = set[int]()
        for index in inner:
            if gaps[index] <= widest and index - 1 not in dropped:
                dropped.add(index)
        points = [point for index, point in enumerate(points) if index not in dropped]
    return tuple(points)
