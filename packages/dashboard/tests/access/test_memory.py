"""Bytes that are held for users, and who gives way."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from trainer_dashboard.access.memory import Holding, Memory


@dataclass
class Lines:
    """Something that can hold half as much."""

    memory: Memory
    party: str
    size: int
    shrinks: bool = True
    ended: int = 0
    holding: Holding = field(init=False)

    def __post_init__(self) -> None:
        self.holding = self.memory.hold(self.party, 0, end=self.end, shrink=self.shrink if self.shrinks else None)
        self.memory.resize(self.holding, self.size)

    def shrink(self) -> None:
        self.size //= 2
        self.memory.resize(self.holding, self.size)

    def end(self) -> None:
        self.ended += 1


def test_bound_of_a_party() -> None:
    """The largest holding of a party shrinks until its bound is kept; nothing ends."""
    memory = Memory(limit=1000, of_one=100)
    small, large = Lines(memory, "a", 30), Lines(memory, "a", 200)
    assert (small.size, large.size, memory.used_by("a")) == (30, 50, 80)
    assert small.ended == large.ended == 0


def test_what_cannot_shrink_ends() -> None:
    """Where nothing can shrink, the largest holding ends, and is counted no more."""
    memory = Memory(limit=1000, of_one=100)
    first, second = Lines(memory, "a", 60, shrinks=False), Lines(memory, "a", 50, shrinks=False)
    assert (first.ended, second.ended, memory.used) == (1, 0, 50)
    memory.release(first.holding)
    memory.resize(first.holding, 500)
    assert memory.used == 50
    memory.release(second.holding)
    assert memory.used == memory.used_by("a") == 0


def test_lines_go_before_streams() -> None:
    """What can shrink shrinks before anything ends, though it is smaller."""
    memory = Memory(limit=1000, of_one=100)
    stream, lines = Lines(memory, "a", 60, shrinks=False), Lines(memory, "a", 50)
    assert (stream.ended, lines.size) == (0, 25)


def test_bound_of_all() -> None:
    """The party that has most gives way, whoever comes last."""
    memory = Memory(limit=150, of_one=100)
    large, small = Lines(memory, "a", 100), Lines(memory, "b", 40)
    late = Lines(memory, "c", 40)
    assert (large.size, small.size, late.size) == (50, 40, 40)
    assert memory.used <= memory.limit


def test_nothing_that_shrinks_is_left() -> None:
    """What is empty already and shrinks no more does not keep others from ending."""
    memory = Memory(limit=1000, of_one=100)
    lines = Lines(memory, "a", 0)
    stream = Lines(memory, "a", 101, shrinks=False)
    assert (stream.ended, lines.ended, memory.used) == (1, 0, 0)


@pytest.mark.parametrize("size", [500, 1000])
def test_the_only_user(size: int) -> None:
    """Whoever has the dashboard for themselves has all of it."""
    memory = Memory(limit=1000, of_one=100)
    assert Lines(memory, "", size).size == size
