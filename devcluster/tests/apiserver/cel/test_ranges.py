"""Ranges of sizes and costs."""

from __future__ import annotations

from trainer_devcluster.apiserver.cel.ranges import LARGEST, UNKNOWN, Range, exactly


def test_nothing_is_larger_than_unknown() -> None:
    """Sums, products and multiples stop where numbers end."""
    for large in (UNKNOWN + exactly(1), UNKNOWN * exactly(2), UNKNOWN.scaled(2), UNKNOWN.scaled(1)):
        assert large.most == LARGEST


def test_multiples_are_rounded_up() -> None:
    """Reading a single character costs something."""
    assert Range(0, 11).scaled(0.1) == Range(0, 2)


def test_either_of_two() -> None:
    """What may be in one of two ranges is between the ends of both."""
    assert Range(1, 2) | Range(5, 7) == Range(1, 7)
