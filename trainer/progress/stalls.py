"""Stalls: trainings that run without progress, such as one whose nodes wait for each other.

Progress is a change of percentage, step or epoch, and of metrics if the training reports nothing else. Time is measured
by the manager's clock and not by the log's, so that neither a difference of clocks nor a log that is read late looks
like a stall. After a restart of the manager the time starts from zero, and a stall that was found before continues.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from datetime import timedelta

from trainer.api.trainjob_status import TrainerStatus
from trainer.kube.clock import Clock, timestamp
from trainer.kube.podlogs.instant import Instant
from trainer.progress.metrics import ProgressSeries
from trainer.progress.pace import summarize
from trainer.progress.protocol import Message

_NOTHING = Message()


class StallWatch:
    """Reports each stall of one training once; the caller calls `check` after the time that `next_check` returns."""

    __slots__ = (
        "_clock",
        "_is_expected_to_report",
        "_last",
        "_run",
        "_series",
        "_since",
        "_time",
        "_timeout",
        "stall",
    )

    def __init__(self, clock: Clock, series: ProgressSeries) -> None:
        self._clock = clock
        self._series = series
        self.stall: str | None = None
        """The message of the condition Stalled; None if the training is not stalled."""
        self._run: Hashable = None
        """None while it is not watched."""
        self._since = 0.0
        """Monotonic time of the last progress, or of the beginning of the watch."""
        self._timeout = math.inf
        self._is_expected_to_report = False
        self._last = _NOTHING
        """The newest value of each field."""
        self._time: Instant | None = None
        """The time of the message with the last progress."""

    def watch(
        self,
        run: Hashable,
        timeout: float | None,
        *,
        is_expected_to_report: bool = False,
        shown: TrainerStatus | None = None,
        stall: str | None = None,
    ) -> None:
        """Watch the training; the time without progress continues while `run` is the same.

        Args:
            run: identifies the run.
            timeout: seconds without progress that make a stall; None or 0 stops watching.
            is_expected_to_report: whether it may stall before its first report.
            shown: the last status of this run that an earlier manager wrote; used at the first call.
            stall: the message of a stall of this run that an earlier manager found and that has not ended; likewise.
        """
        if not timeout:
            self.stop()
            return
        if self._run != run:
            is_first = self._run is None
            self.stop()
            self._run, self._since = run, self._clock.monotonic()
            self._last, self._time = _NOTHING, None
            if is_first:
                self._resume(shown, stall, timeout)
        self._timeout, self._is_expected_to_report = timeout, is_expected_to_report
        if self._remaining > 0:
            self._recover()

    def stop(self) -> None:
        """Stop watching, because the training is suspended, has ended or is deleted."""
        self._run = None
        self._recover()

    def record(self, message: Message, time: Instant) -> bool:
        """Record a message and the time of its line in the log; returns whether it ends a stall."""
        if self._run is None or not self._has_moved(message, time):
            return False
        self._since = self._clock.monotonic()
        return self._recover()

    def check(self) -> str | None:
        """The text of a stall that has begun, once; None without a stall and at later calls."""
        if self._run is None or self.stall is not None or self._remaining > 0:
            return None
        self._series.stalls.inc()
        since = self._clock.now() - timedelta(seconds=self._clock.monotonic() - self._since)
        allowed, last = summarize(math.ceil(self._timeout)), self._last_report
        self._begin(f"no progress since {timestamp(since)}, longer than the {allowed} allowed ({last})")
        return f"no progress for {allowed} ({last})"

    @property
    def next_check(self) -> float | None:
        """Seconds until `check` may find a stall, at least 0; None if only a message can change the result."""
        if self._run is None or self.stall is not None or self._remaining == math.inf:
            return None
        return max(self._remaining, 0.0)

    @property
    def _remaining(self) -> float:
        """Seconds until the training counts as stalled."""
        if self._time is None and not self._is_expected_to_report:
            return math.inf
        return self._since + self._timeout - self._clock.monotonic()

    @property
    def _last_report(self) -> str:
        if self._time is None:
            return "nothing has been reported yet"
        return f"last: {_place(self._last)} at {self._time.moment:%H:%M:%S} UTC"

    def _resume(self, shown: TrainerStatus | None, stall: str | None, timeout: float) -> None:
        if shown is not None and (time := Instant.parse(shown.last_updated_time)) is not None:
            self._has_moved(Message.of_status(shown), time)
        if stall is not None:
            self._since -= timeout
            self._begin(stall)

    def _has_moved(self, message: Message, time: Instant) -> bool:
        """Merge a message; returns whether it has progress."""
        if message.is_all_dropped:
            return False
        before, newest = self._last, self._last.merged(message)
        if _position(newest) == _NOWHERE:
            newest = Message(train_metrics=newest.train_metrics, eval_metrics=newest.eval_metrics)
            has_moved = newest != before
        else:
            has_moved = _position(newest) != _position(before)
        self._last = newest
        if has_moved:
            self._time = time
        return has_moved

    def _begin(self, stall: str) -> None:
        self.stall = stall
        self._series.stalled_jobs.inc()

    def _recover(self) -> bool:
        if self.stall is None:
            return False
        self.stall = None
        self._series.stalled_jobs.dec()
        return True


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
