"""The trends in the list: the last values of the metric of each TrainJob that people want to see first."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trainer.kube.objects import mapping_at, uid_of
from trainer.progress.interest import MetricValue, by_interest

if TYPE_CHECKING:
    from trainer.kube.objects import Object, ObjectKey

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
    _reported: str = ""
    _stride: int = 1
    _seen: int = 0

    @property
    def values(self) -> list[float]:
        """Values at about the same distance, and the last one."""
        return self._kept if self._latest is None else [*self._kept, self._latest]

    def see(self, value: float, reported: str) -> None:
        """Add a value unless it has been seen."""
        if reported == self._reported:
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

    def see(self, key: ObjectKey, job: Object) -> Object | None:
        """Take what a TrainJob reports; returns its first metric with the trend, or None without one."""
        progress = mapping_at(job, "status", "trainerStatus")
        metric = next(iter(by_interest(_metrics(progress))), None)
        if metric is None:
            self.forget(key)
            return None
        identity = uid_of(job), metric.name, metric.is_eval
        trend = self._by_key.get(key)
        if trend is None or trend.identity != identity:
            trend = self._by_key[key] = _Trend(identity)
        trend.see(float(metric.value), str(progress.get("lastUpdatedTime") or ""))
        return {"name": metric.name, "isEval": metric.is_eval, "trend": trend.values}

    def forget(self, key: ObjectKey) -> None:
        """Drop the trend of a TrainJob."""
        self._by_key.pop(key, None)


def _metrics(progress: Object) -> list[MetricValue]:
    """The metrics that are numbers, those of the training first."""
    kinds = (("trainMetrics", False), ("evalMetrics", True))
    return [
        MetricValue(name, f"{number:.{_DIGITS}g}", is_eval)
        for field_name, is_eval in kinds
        for name, text in mapping_at(progress, field_name).items()
        if (number := _number(text)) is not None
    ]


def _number(text: object) -> float | None:
    try:
        number = float(str(text))
    except ValueError:
        return None
    return number if math.isfinite(number) else None
