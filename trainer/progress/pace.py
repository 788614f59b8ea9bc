"""How fast a training goes, from what it has told of how far it is.

The pace is the mean time for a share of the training, in which recent time counts more: the weight of a moment grows
with the time since the beginning, so that the estimate settles at the scale of the training, be it minutes or weeks.
Three things keep it from jumping about:

- The stretch up to the first report of progress is forgotten once as much has been done again: it may contain what is
  done once, such as compiling, or begin anywhere between two percent.
- The longest pause counts only as long as the second longest: what happens once, such as a clock that is set or a
  machine that sleeps, says nothing about the time that remains; evaluations, which come again and again, do.
- Between two reports the remaining time goes down with the clock, but not further than the next report is expected to
  take it.
"""

from __future__ import annotations

import math

_SHORTEST = 1.0
"""Seconds that reports must be apart to tell anything: output may be flushed in bursts."""
_LEAST_SHARE = 0.02
"""What a single stretch must be of the training to tell anything: the first step alone may take minutes to compile."""
_SMALLEST = 1e-12
"""Share of a training that is no progress: a difference from computing with fractions."""
_RECENCY = 1.5
"""The weight of a moment is the time since the beginning to this power."""
_LONGEST_MEMORY = 6 * 3600.0
"""Seconds after which what was counts at most e times less, so that a training of weeks follows a change of speed."""
_FEWEST_STRETCHES = 10.0
"""The memory is at least this many reports long, for trainings that report once a day."""


class Pace:
    """The pace of one training, in a fixed amount of memory; time comes with what is told, in seconds."""

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
        """A training of which the share `done` is done at `time`."""
        self._done = self._start_done = done
        self._seen = self._done_since = self._start = time
        self._forget()

    def _forget(self) -> None:
        # Of the stretches so far, each from one report of progress to another: weighted time and share.
        self._time = self._share = 0.0
        self._elapsed, self._count = 0.0, 0
        self._first_time = self._first_share = 0.0
        self._longest = self._second_longest = 0.0
        self._jump = 0.0

    def assume(self, seconds_per_training: float) -> None:
        """Take the pace up that somebody else has found, as if it had been the same from the beginning."""
        if seconds_per_training > 0:
            self._share = max(self._done, _LEAST_SHARE)
            self._time = self._elapsed = self._share * seconds_per_training
            self._count = int(_FEWEST_STRETCHES)

    def take(self, done: float, time: float) -> None:
        """The share `done`, 0 to 1, is done at `time`.

        Less than before means that the training goes on from a checkpoint, and the same that only time has passed.
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
        """What was share 1 is now share `factor`, because the training has become longer or shorter."""
        self._done *= factor
        self._start_done *= factor
        self._share *= factor
        self._first_share *= factor
        self._jump *= factor
        if self._count and not _SMALLEST < self._share + self._first_share < 1 / _SMALLEST:
            self._forget()

    @property
    def remaining(self) -> float | None:
        """Seconds that remain at the time told last: 0 when all is done, else at least 1.

        None before there is a basis: two hundredths of the training, or two stretches of it.
        """
        if self._done >= 1:
            return 0
        if self._count < 2 and self._share + self._first_share < _LEAST_SHARE:
            return None
        pace = self._pace()
        return max((1 - self._done) * pace - min(self._seen - self._done_since, self._jump * pace), 1)

    def _pass(self, time: float) -> None:
        back = self._seen - time
        if back > 0:  # the clock was set
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
        """The weight of what was `time` seconds ago, `before` seconds after the beginning."""
        memory = max(_LONGEST_MEMORY, _FEWEST_STRETCHES * self._elapsed / self._count)
        return min(math.pow(before / self._elapsed, _RECENCY), math.exp(-time / memory))

    def _pace(self) -> float:
        """Seconds per training."""
        if self._share < self._first_share - _SMALLEST:
            return (self._time + self._first_time) / (self._share + self._first_share)
        return (self._time - self._longest + self._second_longest) / self._share
