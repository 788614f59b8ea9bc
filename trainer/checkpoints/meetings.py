"""At which steps all ranks save, decided by rank 0.

Ranks cannot decide by themselves: a signal or the end of an interval comes to one before a step and to another after
it. So they meet: at a step that all know from the meeting before, rank 0 says whether to save, whether to end, and how
many steps there are to the next meeting, about a second. Nothing is exchanged in between.
"""

from __future__ import annotations

from typing import NamedTuple

from trainer.checkpoints.ranks import Group
from trainer.checkpoints.stop_signal import StopSignal

PATIENCE = 600.0
"""Seconds that a rank waits for rank 0, which may evaluate or write for a while."""
PATIENCE_AFTER_SIGNAL = 15.0
"""Seconds that a rank waits after a signal: half of the usual grace period."""
_INTERVAL = 1.0
"""Seconds between two meetings, where no step takes longer."""
_MOST_STEPS = 20
"""Steps between two meetings: when they become slow all at once, a signal waits for so many of them."""
_OUTDATED = 3600
"""Meetings after which nobody can be so late that the decision is still needed."""


class Decision(NamedTuple):
    """What rank 0 says at a meeting."""

    saves: bool
    ends: bool
    steps: int
    """Steps to the next meeting."""

    def number(self) -> int:
        """It as a number that is not 0."""
        return 1 | self.saves << 1 | self.ends << 2 | self.steps << 3

    @classmethod
    def of(cls, number: int) -> Decision:
        """The decision that a number stands for."""
        return cls(bool(number & 2), bool(number & 4), number >> 3)


class Meetings:
    """The meetings of a group, as one rank takes part in them."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._number = self._steps = 0
        self._called_at: float | None = None
        self._slowest = 0.0
        self._has_said_stop = False

    def step(self, signal: StopSignal, is_over: bool) -> Decision | None:
        """The decision after a step; None between two meetings.

        Args:
            signal: that of this rank.
            is_over: whether the time between two checkpoints is over, on rank 0.

        Raises:
            TimeoutError: rank 0 has decided nothing in time.
            Exception: the store cannot be reached.
        """
        now = self._group.clock()
        if self._called_at is not None:
            # The slowest one of late: a meeting too many costs less than a signal that waits.
            self._slowest = max(now - self._called_at, self._slowest * 0.9)
        self._called_at = now
        if signal.came_at is not None and not self._has_said_stop:
            self._has_said_stop = True
            self._group.add("stop", 1)
        self._steps -= 1
        if self._steps > 0:
            return None
        self._number += 1
        decision = self._decide(is_over) if self._group.rank == 0 else self._learn(signal)
        self._steps = decision.steps
        return decision

    def _decide(self, is_over: bool) -> Decision:
        ends = self._group.add("stop") > 0
        steps = min(_MOST_STEPS, max(1, int(_INTERVAL / self._slowest))) if self._slowest else 1
        decision = Decision(ends or is_over, ends, steps)
        self._group.add(f"meeting/{self._number}", decision.number())
        self._group.delete(f"meeting/{self._number - _OUTDATED}")
        return decision

    def _learn(self, signal: StopSignal) -> Decision:
        began = self._group.clock()

        def patience() -> float:
            return PATIENCE if signal.came_at is None else signal.came_at - began + PATIENCE_AFTER_SIGNAL

        return Decision.of(self._group.wait(f"meeting/{self._number}", 1, patience))
