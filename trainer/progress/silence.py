"""Silence: a training for which no timeout is set has reported nothing for much longer than usual.

It is shown in place of the remaining time, and nothing else follows from it: the condition Stalled and its warning need
a timeout, which only people can choose. The usual interval is the median of the last intervals between reports, by the
times of the log; how long nothing has come is measured by the manager's clock. A silence costs one write of the status.
After a restart of the manager a silence goes on, and another one is found late rather than early.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable, Mapping
from statistics import median
from typing import Any, Final

from trainer.kube.clock import Clock
from trainer.kube.podlogs.instant import Instant

NO_REPORT: Final = "no report since "
"""How `estimatedRemainingTimeSummary` begins while a training is silent."""

_SHORTEST = 60.0
"""Seconds without a report that never count as silence."""
_FACTOR = 10
"""Usual intervals without a report after which a training is silent."""
_PAUSES = 1.5
"""A pause as long as the longest one before, such as that of an evaluation, is usual; its share of tolerance."""
_LONGEST = 3600.0
"""Most seconds that count as the usual interval."""
_REMEMBERED = 15
"""Number of intervals that the median is taken of."""
_FEWEST = 3
"""With fewer intervals the usual one is unknown; the time to the last report, or a minute, stands for it."""


def no_report_since(updated: str) -> str:
    """The words that are shown of a training whose last report is of this time."""
    last = Instant.parse(updated)
    return f"{NO_REPORT}{last.moment:%H:%M} UTC" if last is not None else f"{NO_REPORT}{updated}"


def shows_silence(progress: Mapping[str, Any]) -> bool:
    """Whether a trainerStatus, as JSON, says that the training is silent."""
    return str(progress.get("estimatedRemainingTimeSummary") or "").startswith(NO_REPORT)


class SilenceWatch:
    """Finds out whether one training is silent; the caller calls `check` after the time that `next_check` returns."""

    __slots__ = ("_began", "_clock", "_intervals", "_last", "_longest", "_most", "_reported_at", "_run", "is_silent")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._run: Hashable = None
        """None while it is not watched."""
        self._began: Instant | None = None
        self._last: Instant | None = None
        """The time of the last report; None before the first one, whose absence is no silence."""
        self._reported_at = 0.0
        self._intervals: deque[int] = deque(maxlen=_REMEMBERED)
        self._longest = 0
        self._most = math.inf
        """Seconds without a report after which the training is silent."""
        self.is_silent = False

    def watch(self, run: Hashable, began: Instant | None, shown: Mapping[str, Any]) -> None:
        """Watch the training; what is known of its reports stays while `run` is the same.

        Args:
            run: identifies the run.
            began: when it began; None if that is unknown.
            shown: its trainerStatus, which an earlier manager may have written; used at the first call.
        """
        if self._run == run:
            return
        is_first = self._run is None
        self.stop()
        self._run, self._began = run, began
        last = Instant.parse(str(shown.get("lastUpdatedTime") or "")) if is_first else None
        if last is not None and (began is None or last > began):
            self._note(self._past(last))
            self.is_silent = shows_silence(shown)

    def stop(self) -> None:
        """Stop watching, because there is a timeout, or the training is suspended, has ended or is deleted."""
        self._run = self._began = self._last = None
        self._intervals.clear()
        self._longest, self._most, self.is_silent = 0, math.inf, False

    def record(self, time: Instant) -> None:
        """Record the time of a report; reports within one second count as one, and end a silence."""
        time = self._past(time)
        if self._run is None or (self._last is not None and time.seconds <= self._last.seconds):
            return
        if self._last is not None:
            interval = time.seconds - self._last.seconds
            self._intervals.append(interval)
            self._longest = max(self._longest, interval)
        self._note(time)
        self.is_silent = False

    def check(self) -> bool:
        """Whether the training is silent by now."""
        if self._run is not None and self._clock.monotonic() >= self._reported_at + self._most:
            self.is_silent = True
        return self.is_silent

    @property
    def next_check(self) -> float | None:
        """Seconds until `check` may find a silence, at least 0; None if only a report can change the result."""
        if self.is_silent or self._most == math.inf:
            return None
        return max(self._reported_at + self._most - self._clock.monotonic(), 0.0)

    def _past(self, time: Instant) -> Instant:
        """A time that a program has written, at the latest now: later reports would seem to be older."""
        return min(time, Instant.of(self._clock.now()))

    def _note(self, time: Instant) -> None:
        self._last, self._reported_at = time, self._clock.monotonic()
        if len(self._intervals) >= _FEWEST:
            usual = float(median(self._intervals))
        else:
            elapsed = _LONGEST if self._began is None else time.seconds - self._began.seconds
            usual = float(max(elapsed, self._longest, _SHORTEST))
        self._most = max(_SHORTEST, _FACTOR * min(usual, _LONGEST), _PAUSES * self._longest)
