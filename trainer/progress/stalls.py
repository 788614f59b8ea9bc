"""Stalls: trainings that run without progress, such as one whose nodes wait for each other.

Progress is a change of percentage, step or epoch, and of metrics if the training reports nothing else. Time is measured
by the manager's clock and not by the log's, so that neither a difference of clocks nor a log that is read late looks
like a stall. After a restart of the manager the time starts from zero, and a stall that was found before continues.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from trainer.api.trainjob_status import TrainerStatus
from trainer.kube.clock import Clock, timestamp
from trainer.kube.objects import ObjectKey
from trainer.kube.podlogs.instant import Instant
from trainer.progress.metrics import ProgressSeries
from trainer.progress.pace import summarize
from trainer.progress.protocol import Message


@dataclass(frozen=True, slots=True)
class Before:
    """The state of a training that an earlier manager has watched."""

    status: TrainerStatus | None = None
    """The last status of this run; None before its first message."""
    stall: str | None = None
    """The message of a stall of this run that has not ended; None without one."""


_NOTHING_BEFORE = Before()


class StallWatch:
    """Reports each stall of each training once; the caller calls `check` after the time that `next_check` returns."""

    def __init__(self, clock: Clock, series: ProgressSeries) -> None:
        self._clock = clock
        self._series = series
        self._watched: dict[ObjectKey, _Watched] = {}
        self._stalled: dict[ObjectKey, str] = {}
        """The message of the condition Stalled by TrainJob."""

    def watch(
        self,
        key: ObjectKey,
        run: Hashable,
        timeout: float | None,
        *,
        is_expected_to_report: bool = False,
        before: Before = _NOTHING_BEFORE,
    ) -> None:
        """Watch a training; the time without progress continues while `run` is the same.

        Args:
            key: the TrainJob.
            run: identifies the run.
            timeout: seconds without progress that make a stall; None or 0 stops watching.
            is_expected_to_report: whether it may stall before its first report.
            before: the state from an earlier manager, used at the first call for a training.
        """
        if not timeout:
            self.forget(key)
            return
        watched = self._watched.get(key)
        if watched is None:
            watched = self._watched[key] = _resumed(run, before, timeout, self._clock.monotonic())
            if before.stall is not None:
                self._begin(key, before.stall)
        elif watched.run != run:
            self.forget(key)
            watched = self._watched[key] = _Watched(run, self._clock.monotonic())
        watched.timeout, watched.is_expected_to_report = timeout, is_expected_to_report
        if watched.remaining(self._clock.monotonic()) > 0:
            self._recover(key)

    def forget(self, key: ObjectKey) -> None:
        """Stop watching a training, because it is suspended, has ended or is deleted."""
        self._watched.pop(key, None)
        self._recover(key)

    def record(self, key: ObjectKey, message: Message, time: Instant) -> bool:
        """Record a message and the time of its line in the log; returns whether it ends a stall."""
        watched = self._watched.get(key)
        if watched is None or not watched.take(message, time):
            return False
        watched.since = self._clock.monotonic()
        return self._recover(key)

    def check(self, key: ObjectKey) -> str | None:
        """The text of a stall that has begun, once; None without a stall and at later calls."""
        watched = self._watched.get(key)
        if watched is None or key in self._stalled or watched.remaining(self._clock.monotonic()) > 0:
            return None
        self._series.stalls.inc()
        elapsed = timedelta(seconds=self._clock.monotonic() - watched.since)
        self._begin(key, watched.explanation(self._clock.now() - elapsed))
        return watched.complaint

    def stall_of(self, key: ObjectKey) -> str | None:
        """The message of the condition Stalled of a training; None if it is not stalled."""
        return self._stalled.get(key)

    def next_check(self, key: ObjectKey) -> float | None:
        """Seconds until `check` may find a stall, at least 0; None if only a message can change the result."""
        watched = self._watched.get(key)
        if watched is None or key in self._stalled:
            return None
        remaining = watched.remaining(self._clock.monotonic())
        return None if remaining == math.inf else max(remaining, 0.0)

    def _begin(self, key: ObjectKey, explanation: str) -> None:
        self._stalled[key] = explanation
        self._series.stalled_jobs.set(len(self._stalled))

    def _recover(self, key: ObjectKey) -> bool:
        if key not in self._stalled:
            return False
        del self._stalled[key]
        self._series.stalled_jobs.set(len(self._stalled))
        return True


@dataclass(slots=True)
class _Watched:
    """One run of a training, with its last progress."""

    run: Hashable
    since: float
    """Monotonic time of the last progress, or of the first call."""
    timeout: float = math.inf
    is_expected_to_report: bool = False
    last: Message = field(default_factory=Message)
    """The newest value of each field."""
    time: Instant | None = None
    """The time of the message with the last progress."""

    def remaining(self, now: float) -> float:
        """Seconds until the training counts as stalled."""
        if self.time is None and not self.is_expected_to_report:
            return math.inf
        return self.since + self.timeout - now

    def take(self, message: Message, time: Instant) -> bool:
        """Merge a message; returns whether it has progress."""
        if message.is_all_dropped:
            return False
        before, newest = self.last, self.last.merged(message)
        if _position(newest) == _NOWHERE:
            newest = Message(train_metrics=newest.train_metrics, eval_metrics=newest.eval_metrics)
            has_moved = newest != before
        else:
            has_moved = _position(newest) != _position(before)
        self.last = newest
        if has_moved:
            self.time = time
        return has_moved

    @property
    def complaint(self) -> str:
        """The message of the event."""
        return f"no progress for {summarize(math.ceil(self.timeout))} ({self._last_report})"

    def explanation(self, since: datetime) -> str:
        """The message of the condition, which stays true while the stall lasts."""
        allowed = summarize(math.ceil(self.timeout))
        return f"no progress since {timestamp(since)}, longer than the {allowed} allowed ({self._last_report})"

    @property
    def _last_report(self) -> str:
        if self.time is None:
            return "nothing has been reported yet"
        return f"last: {_place(self.last)} at {self.time.moment:%H:%M:%S} UTC"


def _resumed(run: Hashable, before: Before, timeout: float, now: float) -> _Watched:
    watched = _Watched(run, now if before.stall is None else now - timeout)
    status = before.status
    time = Instant.parse(status.last_updated_time) if status is not None else None
    if status is not None and time is not None:
        watched.take(Message.of_status(status), time)
    return watched


def _position(message: Message) -> tuple[int | None, int | None, int | None]:
    return message.progress_percentage, message.current_step, message.current_epoch


_NOWHERE = (None, None, None)


def _place(message: Message) -> str:
    """The most exact position that was reported."""
    for unit, current, total in (
        ("step", message.current_step, message.total_steps),
        ("epoch", message.current_epoch, message.total_epochs),
    ):
        if current is not None:
            return f"{unit} {current} of {total}" if total is not None else f"{unit} {current}"
    return "metrics" if message.progress_percentage is None else f"{message.progress_percentage} %"
