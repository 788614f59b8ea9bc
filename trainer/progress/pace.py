"""The pace of a training and its remaining time, estimated from its reports of progress.

The pace is the mean time for a share of the training, with more weight on recent time: the weight of a moment grows
with the time since the beginning, so the estimate settles for trainings of minutes and of weeks. Three rules keep it
steady:

- The stretch up to the first report is dropped once the same share has been done again, because it may contain work
  that is done once, such as compiling.
- The longest pause counts only as long as the second longest: a pause that happens once, such as a machine that sleeps,
  does not predict the remaining time, while evaluations, which repeat, do.
- Between two reports the remaining time decreases with the clock, but not below the value expected at the next report.
"""

from __future__ import annotations

import math
from itertools import dropwhile

_SHORTEST = 1.0
"""Least seconds between two reports that are evaluated, since output may be flushed in bursts."""
_LEAST_SHARE = 0.02
"""Least share of the training for an estimate from a single stretch: the first step may take minutes to compile."""
_SMALLEST = 1e-12
"""Differences of shares below this are rounding errors."""
_RECENCY = 1.5
"""Exponent of the time since the beginning in the weight of a moment."""
_LONGEST_MEMORY = 6 * 3600.0
"""Seconds in which the weight of the past decays by e, so that a training of weeks follows a change of speed."""
_FEWEST_STRETCHES = 10.0
"""Least number of reports that the estimate remembers, for trainings that report once a day."""


class Pace:
    """The pace of one training, in constant memory; times are seconds and come from the reports."""

    __slots__ = (
        "_count",
        "_done",
        "_done_since",
        "_elapsed",
        "_first_share",
        "_first_time",
        "_jump",
        "_longest",
        "_second_longest",
        "_seen",
        "_share",
        "_start",
        "_start_done",
        "_time",
    )

    def __init__(self, done: float, time: float) -> None:
        """Start with the share `done` (0 to 1) at `time`."""
        self._done = self._start_done = done
        self._seen = self._done_since = self._start = time
        self._forget()

    def _forget(self) -> None:
        # Weighted sums over the stretches so far, each from one report of progress to the next.
        self._time = self._share = 0.0
        self._elapsed, self._count = 0.0, 0
        self._first_time = self._first_share = 0.0
        self._longest = self._second_longest = 0.0
        self._jump = 0.0

    def assume(self, seconds_per_training: float) -> None:
        """Start with the pace that an earlier manager has estimated."""
        if seconds_per_training > 0:
            self._share = max(self._done, _LEAST_SHARE)
            self._time = self._elapsed = self._share * seconds_per_training
            self._count = int(_FEWEST_STRETCHES)

    def take(self, done: float, time: float) -> None:
        """Record that the share `done` (0 to 1) is done at `time`.

        A smaller share than before means that the training continues from a checkpoint.
        """
        self._pass(time)
        if abs(done - self._done) < _SMALLEST:
            return
        if done < self._done:
            self._begin_stretch(done)
        elif time - self._start >= _SHORTEST:
            self._jump = done - self._done
            self._add_stretch(done - self._start_done, time - self._start)
            self._begin_stretch(done)
        self._done, self._done_since = done, time

    def rescale(self, factor: float) -> None:
        """Multiply all shares by `factor`, because the training has become longer or shorter."""
        self._done *= factor
        self._start_done *= factor
        self._share *= factor
        self._first_share *= factor
        self._jump *= factor
        if self._count and not _SMALLEST < self._share + self._first_share < 1 / _SMALLEST:
            self._forget()

    @property
    def remaining(self) -> float | None:
        """Remaining seconds at the time of the last report: 0 when all is done, else at least 1.

        None until two hundredths of the training, or two stretches, are done.
        """
        if self._done >= 1:
            return 0
        if self._count < 2 and self._share + self._first_share < _LEAST_SHARE:
            return None
        pace = self._pace()
        return max((1 - self._done) * pace - min(self._seen - self._done_since, self._jump * pace), 1)

    def _pass(self, time: float) -> None:
        back = self._seen - time
        if back > 0:  # the clock was set back
            self._start -= back
            self._done_since -= back
        self._seen = time

    def _begin_stretch(self, done: float) -> None:
        self._start, self._start_done = self._seen, done

    def _add_stretch(self, share: float, time: float) -> None:
        before, self._elapsed = self._elapsed, self._elapsed + time
        self._count += 1
        if self._count == 1:
            self._first_share, self._first_time = share, time
            return
        pause = max(time - share * self._time / self._share, 0) if self._share else 0
        weight = self._weight_of(before, time)
        self._time = self._time * weight + time
        self._share = self._share * weight + share
        self._first_time *= weight
        self._first_share *= weight
        pauses = sorted((self._longest * weight, self._second_longest * weight, pause))
        self._second_longest, self._longest = pauses[1:]

    def _weight_of(self, before: float, time: float) -> float:
        """The weight of a stretch `time` seconds ago, `before` seconds after the beginning."""
        memory = max(_LONGEST_MEMORY, _FEWEST_STRETCHES * self._elapsed / self._count)
        return min(math.pow(before / self._elapsed, _RECENCY), math.exp(-time / memory))

    def _pace(self) -> float:
        """Seconds per training."""
        if self._share < self._first_share - _SMALLEST:
            return (self._time + self._first_time) / (self._share + self._first_share)
        return (self._time - self._longest + self._second_longest) / self._share


_SECOND, _MINUTE, _HOUR, _DAY = 1, 60, 3600, 86400
_UNITS = ((_DAY, "day"), (_HOUR, "hour"), (_MINUTE, "minute"), (_SECOND, "second"))
_COARSE_STEPS = (1, 5, 10, 30, *(_MINUTE * n for n in (1, 5, 10, 30)), *(_HOUR * n for n in (1, 3, 6)), _DAY, 10 * _DAY)
_COARSE_SHARE = 8
"""An estimate is rounded to at most this part of itself."""


_ABOUT = "about "


def summarize(seconds: int, *, is_estimate: bool = False) -> str | None:
    """Remaining time in the two largest units at most, such as `9 days 5 hours`; None when nothing remains.

    An estimate is rounded more and begins with about: `about 45 minutes`.
    """
    if seconds <= 0:
        return None
    rounded = _round(seconds, _coarse_step(seconds) if is_estimate else _step(seconds))
    return _ABOUT + _words(rounded) if is_estimate else _words(rounded)


def is_estimate(summary: str | None) -> bool:
    """Whether a summary is our estimate and not the training's own."""
    return summary is not None and summary.startswith(_ABOUT)


def _step(seconds: int) -> int:
    if seconds < 10 * _MINUTE:
        return _SECOND
    if seconds < _DAY:
        return _MINUTE
    return _HOUR if seconds < 100 * _DAY else _DAY


def _coarse_step(seconds: int) -> int:
    return max((step for step in _COARSE_STEPS if step * _COARSE_SHARE <= seconds), default=_SECOND)


def _round(seconds: int, step: int) -> int:
    return (seconds + step // 2) // step * step


def _words(seconds: int) -> str:
    counts: list[tuple[int, str]] = []
    for size, unit in _UNITS:
        count, seconds = divmod(seconds, size)
        counts.append((count, unit))
    largest = list(dropwhile(lambda each: not each[0], counts))[:2]
    return " ".join(f"{count} {unit}{'' if count == 1 else 's'}" for count, unit in largest if count)
