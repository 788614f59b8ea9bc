"""What one run of a training has reported so far, as the status of its TrainJob shows it (KEP-2779)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from trainer.api.trainjob_status import TrainerStatus
from trainer.kube.podlogs.instant import Instant
from trainer.progress.pace import Pace
from trainer.progress.summary import is_estimate, summarize

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer.progress.protocol import Message

_ROUNDING = 0.01
"""How far a reported percentage may be from the steps and still mean the same."""
_LONGEST = 2**63 - 1


class TrainingRun:
    """What one run of a training has reported so far; a restarted container or a new pod is a new run.

    A field that a message lacks keeps what was reported last; the maps of metrics are replaced as wholes. Percentage
    and remaining time hold until a message tells how far the training is without them: then the percentage follows from
    the steps, or else the epochs, and the remaining time is estimated from the pace so far, once there is one.
    """

    __slots__ = ("_measure", "_pace", "_reported", "_share", "_time")

    def __init__(self, status: TrainerStatus | None = None) -> None:
        """Begin anew, or go on from what an earlier manager has written about this very run."""
        self._reported = _Reported()
        self._time: Instant | None = None
        self._measure: _Measure | None = None
        self._share: float | None = None
        self._pace: Pace | None = None
        time = Instant.parse(status.last_updated_time) if status else None
        if status is not None and time is not None:
            self._resume(status, time)

    def take(self, message: Message, time: Instant) -> None:
        """Merge a message that was printed at `time`; messages come in the order of the log."""
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
        """What the TrainJob shall show; None before the first message."""
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
        """Seconds that remain by the pace."""
        remaining = self._pace.remaining if self._pace else None
        return None if remaining is None else min(round(remaining), _LONGEST)

    def _follow(self, stretch: float) -> None:
        """Tell the pace how far the training is."""
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
        """What was share 1 is now this share, since the total number of steps or epochs has changed."""
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
    """What tells how far a training is when it has not told the percentage."""

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
    """What was reported last of each field."""

    percentage: int | None = None
    """None: none, or an older one than what can be derived."""
    remaining: int | None = None
    """Seconds; None: none, or an older one than what can be estimated."""
    step: int | None = None
    steps: int | None = None
    epoch: int | None = None
    epochs: int | None = None
    train_metrics: Mapping[str, str] | None = None
    eval_metrics: Mapping[str, str] | None = None

    def merge(self, message: Message) -> None:
        """Take over what is said about steps, epochs and metrics."""
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
        """The steps; the epochs where steps are not reported, or no longer: more than an epoch lies between them."""
        steps = _measure("steps", self.step, self.steps)
        epochs = _measure("epochs", self.epoch, self.epochs)
        if steps is None or epochs is None:
            return steps or epochs
        return epochs if (epochs.done - 1) * steps.total > steps.done * epochs.total else steps

    def share(self, measure: _Measure | None) -> float | None:
        """How much of the training is done, as exactly as it is known."""
        if self.percentage is None:
            return measure.share if measure else None
        if measure and self.percentage < 100 and abs(measure.share - self.percentage / 100) <= _ROUNDING:
            return measure.share
        return self.percentage / 100


def _measure(unit: str, done: int | None, total: int | None) -> _Measure | None:
    return _Measure(unit, done, total) if done is not None and total is not None and done >= 0 and total > 0 else None
