"""The trends in the list: the last values of the metric of each TrainJob that people want to see first."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from trainer.kube.objects import Object, ObjectKey
from trainer.progress.interest import MetricValue, by_interest
from trainer.view.row import TrainJobRow

POINTS = 24
"""Most values of a trend; then every second one is dropped."""
_DIGITS = 5


@dataclass(slots=True)
class _Trend:
    """One metric of one run of the dashboard: first values are those when it began to watch."""

    identity: tuple[str, str, bool]
    """The uid of the TrainJob, and name and kind of the metric."""
    _kept: list[float] = field(default_factory=list)
    _latest: float | None = None
    """The last value, while it is none of those that are kept."""
    _reported: datetime | None = None
    _stride: int = 1
    _seen: int = 0

    @property
    def values(self) -> list[float]:
        """Values at about the same distance, and the last one."""
        return self._kept if self._latest is None else [*self._kept, self._latest]

    def add(self, value: float, reported: datetime | None) -> None:
        """Add a value unless it has been seen."""
        if self._seen and reported == self._reported:
            return
        self._reported = reported
        is_kept = self._seen % self._stride == 0
        self._seen += 1
        if not is_kept:
            self._latest = value
            return
        self._latest = None
        self._kept = [*self._kept, value]
        if len(self._kept) == POINTS:
            self._kept, self._latest = self._kept[::2], value
            self._stride *= 2


class Trends:
    """Trends by key, in bounded memory; what was reported before the dashboard started is not known."""

    def __init__(self) -> None:
        self._by_key: dict[ObjectKey, _Trend] = {}

    def add(self, key: ObjectKey, row: TrainJobRow) -> Object | None:
        """Take what a TrainJob reports; returns its first metric with the trend, or None without one."""
        metric = next(iter(by_interest(_numbers(row.progress.metrics))), None)
        if metric is None:
            self.forget(key)
            return None
        identity = row.uid, metric.name, metric.is_eval
        trend = self._by_key.get(key)
        if trend is None or trend.identity != identity:
            trend = self._by_key[key] = _Trend(identity)
        trend.add(float(metric.value), row.progress.updated)
        return {"name": metric.name, "isEval": metric.is_eval, "trend": trend.values}

    def forget(self, key: ObjectKey) -> None:
        """Drop the trend of a TrainJob."""
        self._by_key.pop(key, None)


def _numbers(metrics: Iterable[MetricValue]) -> list[MetricValue]:
    return [
        metric._replace(value=f"{number:.{_DIGITS}g}")
        for metric in metrics
        if (number := _number(metric.value)) is not None
    ]


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
