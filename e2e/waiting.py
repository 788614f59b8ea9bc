"""Waiting for what other processes do."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

POLL_SECONDS = 0.1


def until(
    condition: Callable[[], T | None],
    what: str | Callable[[], str],
    *,
    timeout: float = 60,
    pause: float = POLL_SECONDS,
) -> T:
    """Poll until the condition is true, and return what it returned.

    Args:
        condition: what is polled.
        what: what is waited for; a function, called after the timeout, where that tells how far it has come.
        timeout: seconds.
        pause: seconds between two polls.
    """
    deadline = time.monotonic() + timeout
    while not (result := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout:.0f} s: {what if isinstance(what, str) else what()}")
        time.sleep(pause)
    return result
