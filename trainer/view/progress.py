"""The progress that a TrainJob reports (KEP-2779); texts are one line without control characters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from trainer.api.trainjob_status import STEP_FIELDS, StepState, TrainerStatus
from trainer.kube.clock import parse_timestamp
from trainer.kube.logs.escaping import visible
from trainer.progress.interest import MetricValue
from trainer.progress.pace import summarize
from trainer.progress.silence import shows_silence
from trainer.view.checkpoint import LastCheckpoint


@dataclass(frozen=True, slots=True)
class TrainingProgress:
    """`status.trainerStatus`; everything is optional, since trainings report what they know."""

    percentage: int | None = None
    """0 to 100."""
    remaining_seconds: int | None = None
    """Seconds until the end of the training."""
    remaining: str = ""
    """The remaining time for people, such as `about 45 minutes`; empty when unknown."""
    silence: str = ""
    """Such as `no report since 10:30 UTC`, shown in place of the remaining time; empty for a training that reports."""
    step: int | None = None
    total_steps: int | None = None
    epoch: int | None = None
    total_epochs: int | None = None
    metrics: tuple[MetricValue, ...] = ()
    """Training metrics first, each kind by name."""
    updated: datetime | None = None
    """When it was measured; None when nothing has been reported."""
    checkpoint: LastCheckpoint | None = field(default=None, compare=False)
    """The last complete one, of this run or an earlier one; it is no progress."""

    @classmethod
    def of(cls, status: Mapping[str, Any] | TrainerStatus | None) -> TrainingProgress:
        """Read `status.trainerStatus`; values that contradict our CRD are left out."""
        if not isinstance(status, dict | TrainerStatus):
            return NOTHING_REPORTED
        fields = status if isinstance(status, dict) else status.to_object()
        percentage, remaining = _integer(fields, "progressPercentage"), fields.get("estimatedRemainingTimeSummary")
        summary, is_silent = visible(str(remaining or "")), shows_silence(fields)
        return cls(
            percentage=None if percentage is None else min(max(percentage, 0), 100),
            remaining_seconds=_integer(fields, "estimatedRemainingSeconds"),
            remaining="" if is_silent else summary,
            silence=summary if is_silent else "",
            step=_integer(fields, "currentStep"),
            total_steps=_integer(fields, "totalSteps"),
            epoch=_integer(fields, "currentEpoch"),
            total_epochs=_integer(fields, "totalEpochs"),
            metrics=(*_metrics(fields, "trainMetrics"), *_metrics(fields, "evalMetrics", is_eval=True)),
            updated=_time(fields.get("lastUpdatedTime")),
            checkpoint=LastCheckpoint.of(fields),
        )

    def silence_at(self, now: datetime) -> str:
        """The silence as it is now, such as `no report for 12 minutes`; empty for a training that reports."""
        if not self.silence or self.updated is None:
            return self.silence
        return f"no report for {summarize(max(int((now - self.updated).total_seconds()), 0))}"

    @property
    def steps(self) -> str:
        """Steps as `4500/10000`; empty when none are reported."""
        return _fraction(self.step, self.total_steps)

    @property
    def epochs(self) -> str:
        """Epochs as `2/5`; empty when none are reported."""
        return _fraction(self.epoch, self.total_epochs)

    def is_newer_than(self, other: TrainingProgress) -> bool:
        """Whether it was measured later; the same second counts as later."""
        return self.updated is not None and (other.updated is None or self.updated >= other.updated)


NOTHING_REPORTED = TrainingProgress()
_STEPS = list(STEP_FIELDS)


class StepProgress(NamedTuple):
    """A step beside the training, as the status of its TrainJob shows it."""

    name: str
    """The container, such as `dataset-initializer`."""
    state: str
    """Running, Complete or Failed."""
    progress: TrainingProgress
    """The progress that it has reported."""

    @classmethod
    def all_of(cls, status: Mapping[str, Any]) -> tuple[StepProgress, ...]:
        """The steps of a status, in the order in which they run."""
        shown = [(name, status.get(field)) for name, field in STEP_FIELDS.items()]
        return tuple(
            cls(name, visible(str(step.get("state") or "")), TrainingProgress.of(step))
            for name, step in shown
            if isinstance(step, dict)
        )

    @property
    def is_running(self) -> bool:
        """Whether it has neither ended nor failed."""
        return self.state == StepState.RUNNING

    @property
    def is_last(self) -> bool:
        """Whether it follows the training."""
        return self.name == _STEPS[-1]


def in_order(steps: Iterable[StepProgress]) -> tuple[StepProgress, ...]:
    """The steps in the order in which they run."""
    return tuple(sorted(steps, key=lambda step: _STEPS.index(step.name)))


def _metrics(fields: Mapping[str, Any], field: str, *, is_eval: bool = False) -> list[MetricValue]:
    metrics = fields.get(field)
    if not isinstance(metrics, dict):
        return []
    return [MetricValue(visible(name), visible(str(value)), is_eval) for name, value in sorted(metrics.items())]


def _integer(fields: Mapping[str, Any], field: str) -> int | None:
    value = fields.get(field)
    return value if isinstance(value, int) else None


def _fraction(done: int | None, total: int | None) -> str:
    if done is None:
        return ""
    return str(done) if total is None else f"{done}/{total}"


def _time(text: object) -> datetime | None:
    try:
        return parse_timestamp(text) if isinstance(text, str) else None
    except ValueError:
        return None
