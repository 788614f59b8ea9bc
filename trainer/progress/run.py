"""The status that one run of a training has reported so far, as `trainerStatus` shows it (KEP-2779)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from trainer.api.trainjob_status import TrainerStatus
from trainer.kube.podlogs.instant import Instant
from trainer.progress.pace import Pace, is_estimate, summarize

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer.progress.protocol import Message

_ROUNDING = 0.01
"""Largest difference between a reported percentage and the share of steps that counts as rounding."""
_LONGEST = 2**63 - 1


class TrainingRun:
    """Merges the messages of one run; a restarted container or a new pod is a new run.

    A field that a message lacks keeps its last value; the maps of metrics are replaced as a whole. Percentage and
    remaining time stay until a message reports steps or epochs without them: then the percentage is computed from the
    steps, or else the epochs, and the remaining time is estimated from the pace.
    """

    __slots__ = ("_measure", "_pace", "_reported", "_share", "_time")

    def __init__(self, status: TrainerStatus | None = None) -> None:
        """Start with nothing, or with the status that an earlier manager wrote about this run."""
        self._reported = _Reported()
        self._time: Instant | None = None
        self._measure: _Measure | None = None
        self._share: float | None = None
        self._pace: Pace | None = None
        time = Instant.parse(status.last_updated_time) if status else None
        if status is not None and time is not None:
            self._resume(status, time)

    def take(self, message: Message, time: Instant) -> None:
        """Merge a message that was printed at `time`; calls must be in the order of the log."""
        reported, before = self._reported, self._measure
        reported.merge(message)
        self._time, self._measure = time, reported.measure
        tells_how_far = message.progress_percentage is not None or (
            self._measure is not None and self._measure.is_in(message)
        )
        if tells_how_far:
            reported.percentage = message.progress_percentage
        self._follow(self._stretch(before))
        if message.estimated_remaining_seconds is not None:
            reported.remaining = message.estimated_remaining_seconds
        elif tells_how_far and self._estimate is not None:
            reported.remaining = None

    @property
    def status(self) -> TrainerStatus | None:
        """The value of `trainerStatus`; None before the first message."""
        if self._time is None:
            return None
        reported = self._reported
        percentage = reported.percentage
        remaining = self._estimate if reported.remaining is None else reported.remaining
        return TrainerStatus(
            progress_percentage=self._measure.percentage if percentage is None and self._measure else percentage,
            estimated_remaining_seconds=remaining,
            estimated_remaining_time_summary=summarize(remaining or 0, is_estimate=reported.remaining is None),
            current_step=reported.step,
            total_steps=reported.steps,
            current_epoch=reported.epoch,
            total_epochs=reported.epochs,
            train_metrics=dict(reported.train_metrics) if reported.train_metrics else None,
            eval_metrics=dict(reported.eval_metrics) if reported.eval_metrics else None,
            last_updated_time=self._time.second,
        )

    @property
    def _estimate(self) -> int | None:
        """Remaining seconds by the pace; None without an estimate."""
        remaining = self._pace.remaining if self._pace else None
        return None if remaining is None else min(round(remaining), _LONGEST)

    def _follow(self, stretch: float) -> None:
        """Pass the share of the training that is done to the pace."""
        self._share = self._reported.share(self._measure)
        if self._share is None or self._time is None:
            return
        seconds = self._time.seconds + self._time.nanoseconds / 1e9
        if self._pace is None:
            self._pace = Pace(self._share, seconds)
            return
        self._pace.rescale(stretch)
        self._pace.take(self._share, seconds)

    def _stretch(self, before: _Measure | None) -> float:
        """The factor for shares after a change of the total number of steps or epochs."""
        now = self._measure
        if before is None or now is None or before.unit != now.unit or before.total == now.total:
            return 1
        counts_anew = now.done < before.done
        return 1 if counts_anew or self._share != before.share else before.total / now.total

    def _resume(self, status: TrainerStatus, time: Instant) -> None:
        remaining = status.estimated_remaining_seconds
        self._reported = _Reported(
            percentage=status.progress_percentage,
            remaining=remaining,
            step=status.current_step,
            steps=status.total_steps,
            epoch=status.current_epoch,
            epochs=status.total_epochs,
            train_metrics=status.train_metrics,
            eval_metrics=status.eval_metrics,
        )
        self._time, self._measure = time, self._reported.measure
        self._follow(1)
        if self._pace is None or self._share is None or self._share >= 1 or remaining is None:
            return
        self._pace.assume(remaining / (1 - self._share))
        if is_estimate(status.estimated_remaining_time_summary):
            self._reported.remaining = None


class _Measure(NamedTuple):
    """Steps or epochs done, from which the percentage follows when the training does not report it."""

    unit: str
    """`steps` or `epochs`."""
    done: int
    total: int

    @property
    def share(self) -> float:
        return min(self.done / self.total, 1.0)

    @property
    def percentage(self) -> int:
        return min(100 * self.done // self.total, 100)

    def is_in(self, message: Message) -> bool:
        return (message.current_step if self.unit == "steps" else message.current_epoch) is not None


@dataclass(slots=True)
class _Reported:
    """The last reported value of each field."""

    percentage: int | None = None
    """None without one, or when newer steps or epochs give the percentage."""
    remaining: int | None = None
    """Seconds; None without one, or when a newer estimate exists."""
    step: int | None = None
    steps: int | None = None
    epoch: int | None = None
    epochs: int | None = None
    train_metrics: Mapping[str, str] | None = None
    eval_metrics: Mapping[str, str] | None = None

    def merge(self, message: Message) -> None:
        """Take steps, epochs and metrics of a message."""
        if message.current_step is not None:
            self.step = message.current_step
        if message.total_steps is not None:
            self.steps = message.total_steps
        if message.current_epoch is not None:
            self.epoch = message.current_epoch
        if message.total_epochs is not None:
            self.epochs = message.total_epochs
        if message.train_metrics is not None:
            self.train_metrics = message.train_metrics
        if message.eval_metrics is not None:
            self.eval_metrics = message.eval_metrics

    @property
    def measure(self) -> _Measure | None:
        """The steps, or the epochs when steps are missing or lag more than one epoch behind."""
        steps = _measure("steps", self.step, self.steps)
        epochs = _measure("epochs", self.epoch, self.epochs)
        if steps is None or epochs is None:
            return steps or epochs
        return epochs if (epochs.done - 1) * steps.total > steps.done * epochs.total else steps

    def share(self, measure: _Measure | None) -> float | None:
        """The share of the training that is done, 0 to 1: from steps or epochs when they agree with the percentage."""
        if self.percentage is None:
            return measure.share if measure else None
        if measure and self.percentage < 100 and abs(measure.share - self.percentage / 100) <= _ROUNDING:
            return measure.share
        return self.percentage / 100


def _measure(unit: str, done: int | None, total: int | None) -> _Measure | None:
    return _Measure(unit, done, total) if done is not None and total is not None and done >= 0 and total > 0 else None
