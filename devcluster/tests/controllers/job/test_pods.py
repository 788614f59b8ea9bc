from __future__ import annotations

import pytest

from trainer_devcluster.controllers.job.pods import format_indexes, parse_indexes


@pytest.mark.parametrize(
    ("indexes", "text"),
    [
        pytest.param([], "", id="none"),
        pytest.param([3], "3", id="one"),
        pytest.param([4, 3], "3,4", id="two in a row are listed"),
        pytest.param([0, 1, 2, 5, 7, 8], "0-2,5,7,8", id="mixed"),
    ],
)
def test_indexes_are_written_as_sorted_ranges(indexes: list[int], text: str) -> None:
    """Runs of three and more are abbreviated, and parsing gives the same indexes back."""
    assert format_indexes(indexes) == text
    assert parse_indexes(text, completions=100) == frozenset(indexes)


def test_indexes_beyond_completions_are_dropped() -> None:
    """A Job that was scaled down forgets the indexes that it no longer has."""
    assert parse_indexes("0-5,8", completions=3) == frozenset({0, 1, 2})


def test_damaged_text_does_not_break_the_job() -> None:
    """What is no number is skipped."""
    assert parse_indexes("1,x,3-y,", completions=10) == frozenset({1})
