"""Ranks that agree at which step they save."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from trainer.checkpoints.meetings import PATIENCE, PATIENCE_AFTER_SIGNAL, Meetings
from trainer.checkpoints.ranks import Group
from trainer.checkpoints.stop_signal import StopSignal


@dataclass
class Ranks:
    """Some ranks of a training in one process, which take each step one after the other."""

    size: int
    now: float = 1000.0
    counters: Counter[str] = field(default_factory=Counter)
    exchanges: int = 0
    slept: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.meetings = [Meetings(self.group(rank)) for rank in range(self.size)]
        self.signals = [StopSignal() for _ in range(self.size)]

    def group(self, rank: int) -> Group:
        def add(key: str, number: int) -> int:
            self.exchanges += 1
            self.counters[key] += number
            return self.counters[key]

        return Group(rank, self.size, add, self.counters.pop, clock=lambda: self.now, sleep=self.sleep)

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept()

    def step(self, seconds: float, *, is_over: bool = False) -> list[tuple[bool, bool]]:
        """What all ranks do after a step: whether they save, and whether they end."""
        self.now += seconds
        each = zip(self.meetings, self.signals, strict=True)
        decisions = [meetings.step(signal, is_over) for meetings, signal in each]
        return [(decision.saves, decision.ends) if decision else (False, False) for decision in decisions]


@pytest.mark.parametrize("rank", [0, 1, 2])
@pytest.mark.parametrize("seconds", [0.001, 0.1, 7.0])
def test_a_signal(rank: int, seconds: float) -> None:
    """All ranks save and end after the same step, soon after one of them has got a signal."""
    ranks = Ranks(3)
    for _ in range(200):
        assert ranks.step(seconds) == [(False, False)] * 3
    ranks.signals[rank].came_at = ranks.now
    answers = [ranks.step(seconds)]
    while answers[-1] == [(False, False)] * 3:
        answers.append(ranks.step(seconds))
    assert answers[-1] == [(True, True)] * 3
    assert len(answers) <= 2 + min(50, 1 / seconds)


def test_the_decision_is_the_same() -> None:
    """A signal that comes between two ranks of one step counts for all of them at the next meeting."""
    ranks = Ranks(2)
    ranks.now += 5
    ranks.step(5.0)
    first = ranks.meetings[0].step(ranks.signals[0], False)
    ranks.signals[1].came_at = ranks.now
    assert ranks.meetings[1].step(ranks.signals[1], False) == first
    assert ranks.step(5.0) == [(True, True)] * 2


def test_an_interval() -> None:
    """All ranks save when the time is over for rank 0, and go on."""
    ranks = Ranks(2)
    ranks.step(1.0)
    assert ranks.step(1.0, is_over=True) == [(True, False)] * 2
    assert ranks.step(1.0) == [(False, False)] * 2


def test_cost() -> None:
    """There are three exchanges a second for two ranks, however many steps there are."""
    ranks = Ranks(2)
    for _ in range(100):
        ranks.step(0.05)
    before = ranks.exchanges
    for _ in range(2000):
        ranks.step(0.05)
    assert ranks.exchanges - before <= 3 * 2000 / 20 * 1.1


@pytest.mark.parametrize(
    ("signal_after", "expected"),
    [
        pytest.param(None, PATIENCE, id="no-signal"),
        pytest.param(100.0, 100 + PATIENCE_AFTER_SIGNAL, id="signal"),
    ],
)
def test_rank_0_is_gone(signal_after: float | None, expected: float) -> None:
    """A rank waits for rank 0 for a limited time, and not for long once it must end."""
    ranks = Ranks(2)
    began = ranks.now
    signal = ranks.signals[1]

    def come() -> None:
        if signal_after is not None and signal.came_at is None and ranks.now - began >= signal_after:
            signal.came_at = ranks.now

    ranks.slept = come
    with pytest.raises(TimeoutError):
        ranks.meetings[1].step(signal, False)
    assert expected <= ranks.now - began <= expected + 1


def test_no_keys_pile_up() -> None:
    """The store keeps the decisions of the last hour alone."""
    ranks = Ranks(2)
    for _ in range(4000):
        ranks.step(1.0)
    assert len(ranks.counters) <= 3602
