"""The status that one run of a training has reported so far, as `trainerStatus` shows it (KEP-2779)."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from pydantic.alias_generators import to_camel

from trainer.api.trainjob_status import TrainerStatus
from trainer.kube.field_errors import FieldError, invalid
from trainer.kube.podlogs.instant import Instant
from trainer.progress.pace import Pace, is_estimate, summarize
from trainer.progress.protocol import Message

_ROUNDING = 0.01
"""Largest difference between a reported percentage and the share of steps that counts as rounding."""
_LONGEST = 2**63 - 1


class TrainingRun:
    """Merges the messages of one run; a restarted container or a new pod is a new run.

    `Message.merged` says how. A percentage that is not reported is computed from the steps, or else the epochs. A
    remaining time holds until a message reports a percentage, steps or epochs without it: then it is estimated from the
    pace. A total below the steps or epochs that are done is dropped, since nothing can be computed from it.
    """

    __slots__ = ("_measure", "_pace", "_reported", "_share", "_time")

    def __init__(self, status: TrainerStatus | None = None) -> None:
        """Start with nothing, or with the status that an earlier manager wrote about this run."""
        self._reported = Message()
        """The last value of each field, without a remaining time that is outdated."""
        self._time: Instant | None = None
        self._measure: _Measure | None = None
        self._share: float | None = None
        self._pace: Pace | None = None
        time = Instant.parse(status.last_updated_time) if status else None
        if status is not None and time is not None:
            self._resume(status, time)

    def take(self, message: Message, time: Instant, *, adds_metrics: bool = False) -> tuple[FieldError, ...]:
        """Merge a message that was printed at `time`; calls must be in the order of the log.

        If it `adds_metrics`, those that it lacks keep their values, as where each line has a part of them.

        Returns the errors of totals that it drops.
        """
        if adds_metrics:
            message = _with_metrics_of(self._reported, message)
        before, self._reported = self._measure, self._reported.merged(message)
        if message.is_all_dropped:  # nothing was measured; a metric that is no number any more is not shown
            return ()
        self._reported, errors = _without_impossible_totals(self._reported)
        self._time, self._measure = time, _measure_of(self._reported)
        tells_how_far = message.progress_percentage is not None or (
            self._measure is not None and self._measure.is_in(message)
        )
        self._follow(self._stretch(before))
        if tells_how_far and message.estimated_remaining_seconds is None and self._estimate is not None:
            self._reported = replace(self._reported, estimated_remaining_seconds=None)
        return errors

    @property
    def status(self) -> TrainerStatus | None:
        """The value of `trainerStatus`; None before the first message."""
        if self._time is None:
            return None
        reported = self._reported
        percentage, stated = reported.progress_percentage, reported.estimated_remaining_seconds
        remaining = self._estimate if stated is None else stated
        return TrainerStatus(
            progress_percentage=self._measure.percentage if percentage is None and self._measure else percentage,
            estimated_remaining_seconds=remaining,
            estimated_remaining_time_summary=summarize(remaining or 0, is_estimate=stated is None),
            current_step=reported.current_step,
            total_steps=reported.total_steps,
            current_epoch=reported.current_epoch,
            total_epochs=reported.total_epochs,
            train_metrics=dict(reported.train_metrics) if reported.train_metrics else None,
            eval_metrics=dict(reported.eval_metrics) if reported.eval_metrics else None,
            last_updated_time=self._time.second,
        )

    @property
    def position(self) -> tuple[int | None, int | None]:
        """The last step and the last epoch; None for what it does not report."""
        return self._reported.current_step, self._reported.current_epoch

    @property
    def _estimate(self) -> int | None:
        """Remaining seconds by the pace; None without an estimate."""
        remaining = self._pace.remaining if self._pace else None
        return None if remaining is None else min(round(remaining), _LONGEST)

    def _follow(self, stretch: float) -> None:
        """Pass the share of the training that is done to the pace."""
        self._share = _share_of(self._reported.progress_percentage, self._measure)
        if self._share is None or self._time is None:
            self._pace = None
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
        self._reported, errors = _without_impossible_totals(Message.of_status(status))
        self._time, self._measure = time, _measure_of(self._reported)
        percentage = self._measure.percentage if self._measure is not None else None
        if errors or percentage == self._reported.progress_percentage:  # it was computed
            self._reported = replace(self._reported, progress_percentage=None)
        self._follow(1)
        if self._pace is None or self._share is None or self._share >= 1 or remaining is None:
            return
        self._pace.assume(remaining / (1 - self._share))
        if is_estimate(status.estimated_remaining_time_summary):
            self._reported = replace(self._reported, estimated_remaining_seconds=None)


def _with_metrics_of(reported: Message, message: Message) -> Message:
    """A message with the metrics that it lacks."""
    train, evaluation = message.train_metrics, message.eval_metrics
    return replace(
        message,
        train_metrics=None if train is None else {**(reported.train_metrics or {}), **train},
        eval_metrics=None if evaluation is None else {**(reported.eval_metrics or {}), **evaluation},
    )


class _Measure(NamedTuple):
    """Steps or epochs done, from which the percentage follows when the training does not report it."""

    unit: str
    """`steps` or `epochs`."""
    done: int
    total: int

    @property
    def share(self) -> float:
        return self.done / self.total

    @property
    def percentage(self) -> int:
        return 100 * self.done // self.total

    def is_in(self, message: Message) -> bool:
        return (message.current_step if self.unit == "steps" else message.current_epoch) is not None


def _without_impossible_totals(reported: Message) -> tuple[Message, tuple[FieldError, ...]]:
    """Without a total number of steps or epochs that is less than what is done, such as step 200 of 100."""
    errors = []
    for total, current in (("total_steps", "current_step"), ("total_epochs", "current_epoch")):
        most, done = getattr(reported, total), getattr(reported, current)
        if most is not None and done is not None and 0 < most < done:
            rule = f"must be at least {to_camel(current)}, which is {done}; it counts as unknown"
            errors.append(invalid(to_camel(total), most, rule))
            reported = reported.merged(Message(cleared=frozenset({total})))
    return reported, tuple(errors)


def _measure_of(reported: Message) -> _Measure | None:
    """The steps, or the epochs when steps are missing or lag more than one epoch behind."""
    steps = _measure("steps", reported.current_step, reported.total_steps)
    epochs = _measure("epochs", reported.current_epoch, reported.total_epochs)
    if steps is None or epochs is None:
        return steps or epochs
    return epochs if (epochs.done - 1) * steps.total > steps.done * epochs.total else steps


def _share_of(percentage: int | None, measure: _Measure | None) -> float | None:
    """The share of the training that is done, 0 to 1: from steps or epochs when they agree with the percentage."""
    if percentage is None:
        return measure.share if measure else None
    if measure and percentage < 100 and abs(measure.share - percentage / 100) <= _ROUNDING:
        return measure.share
    return percentage / 100


def _measure(unit: str, done: int | None, total: int | None) -> _Measure | None:
    return _Measure(unit, done, total) if done is not None and total is not None and done >= 0 and total > 0 else None
