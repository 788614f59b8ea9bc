"""What a wait that failed reports."""

from __future__ import annotations

import pytest

from e2e.waiting import until


def test_what_it_is_like_in_the_end() -> None:
    """A function is asked what it was waiting for when the time is over, and not before it begins."""
    polls: list[int] = []

    def never() -> bool:
        polls.append(1)
        return False

    with pytest.raises(AssertionError, match=r"^not within 0 s: something, after [1-9]"):
        until(never, lambda: f"something, after {len(polls)} polls", timeout=0, pause=0)
