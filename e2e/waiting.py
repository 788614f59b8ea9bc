"""Waiting for what other processes do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

POLL_SECONDS = 0.1
LONGEST_POLL_SECONDS = 0.5
"""After a wait of some seconds: each poll starts a kubectl, on the cores on which the awaited processes start."""


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
        pause: seconds between two polls at first; later a tenth of the time waited, up to LONGEST_POLL_SECONDS.
    """
    start = time.monotonic()
    while not (result := condition()):
        waited = time.monotonic() - start
        if waited > timeout:
            raise AssertionError(f"not within {timeout:.0f} s: {what if isinstance(what, str) else what()}")
        time.sleep(max(pause, min(waited / 10, LONGEST_POLL_SECONDS)))
    return result
