"""What a TrainJob tells about the progress of its training (KEP-2779), in the words of tables and screens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from trainer.api.trainjob_status import TrainerStatus
from trainer.cli.console import printable, short_duration
from trainer.kube.clock import parse_timestamp
from trainer.progress.summary import is_estimate

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


class Metric(NamedTuple):
    """One metric as it was measured last."""

    name: str
    value: str
    """The number, digit by digit as the training printed it."""
    is_eval: bool = False
    """Whether it was measured on the evaluation data. Default: on the training data."""


@dataclass(frozen=True, slots=True)
class TrainingProgress:
    """`status.trainerStatus`; everything is optional, for trainings report what they know."""

    percentage: int | None = None
    """0 to 100."""
    remaining_seconds: int | None = None
    """Until the end of the training."""
    remaining: str = ""
    """The same for people, such as `about 45 minutes`; empty when unknown."""
    step: int | None = None
    total_steps: int | None = None
    epoch: int | None = None
    total_epochs: int | None = None
    metrics: tuple[Metric, ...] = ()
    """Those of training first, each in the order of names."""
    updated: datetime | None = None
    """When it was measured; None when nothing has been reported."""

    @classmethod
    def of(cls, status: Mapping[str, Any] | TrainerStatus | None) -> TrainingProgress:
        """Read `status.trainerStatus`; what is not as our CRD has it is left out: others may have written it."""
        if not isinstance(status, dict | TrainerStatus):
            return NOTHING_REPORTED
        fields = status if isinstance(status, dict) else status.to_object()
        percentage, remaining = _integer(fields, "progressPercentage"), fields.get("estimatedRemainingTimeSummary")
        return cls(
            percentage=None if percentage is None else min(max(percentage, 0), 100),
            remaining_seconds=_integer(fields, "estimatedRemainingSeconds"),
            remaining=printable(str(remaining or "")),
            step=_integer(fields, "currentStep"),
            total_steps=_integer(fields, "totalSteps"),
            epoch=_integer(fields, "currentEpoch"),
            total_epochs=_integer(fields, "totalEpochs"),
            metrics=(*_metrics(fields, "trainMetrics"), *_metrics(fields, "evalMetrics", is_eval=True)),
            updated=_time(fields.get("lastUpdatedTime")),
        )

    @property
    def short_remaining(self) -> str:
        """The remaining time for a column of a table: `9d5h`, or `~45m` when it is an estimate; empty when unknown."""
        if not self.remaining or not self.remaining_seconds:
            return self.remaining
        return ("~" if is_estimate(self.remaining) else "") + short_duration(self.remaining_seconds)

    @property
    def steps(self) -> str:
        """Steps as `4500/10000`; empty when none are reported."""
        return _fraction(self.step, self.total_steps, "/")

    @property
    def epochs(self) -> str:
        """Epochs as `2/5`; empty when none are reported."""
        return _fraction(self.epoch, self.total_epochs, "/")

    def is_newer_than(self, other: TrainingProgress) -> bool:
        """Whether it was measured later, or at all; what was measured in the same second counts as newer."""
        return self.updated is not None and (other.updated is None or self.updated >= other.updated)


NOTHING_REPORTED = TrainingProgress()


def _metrics(fields: Mapping[str, Any], field: str, *, is_eval: bool = False) -> list[Metric]:
    metrics = fields.get(field)
    if not isinstance(metrics, dict):
        return []
    return [Metric(printable(name), printable(str(value)), is_eval) for name, value in sorted(metrics.items())]


def _integer(fields: Mapping[str, Any], field: str) -> int | None:
    value = fields.get(field)
    return value if isinstance(value, int) else None


def _fraction(done: int | None, total: int | None, separator: str) -> str:
    if done is None:
        return ""
    return str(done) if total is None else f"{done}{separator}{total}"


def _time(text: object) -> datetime | None:
    try:
        return parse_timestamp(text) if isinstance(text, str) else None
    except ValueError:
        return None
