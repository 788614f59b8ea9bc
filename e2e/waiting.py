"""Waiting for what other processes do."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

POLL_SECONDS = 0.1


def until(condition: Callable[[], T | None], what: str, *, timeout: float = 60, pause: float = POLL_SECONDS) -> T:
    """Poll until the condition is true, and return what it returned."""
    deadline = time.monotonic() + timeout
    while not (result := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout:.0f} s: {what}")
        time.sleep(pause)
    return result
