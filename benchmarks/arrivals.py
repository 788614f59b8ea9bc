"""How far a subject has come, and waiting for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

TIMEOUT = 60.0
"""Seconds after which a trial that does not get on is given up."""


class Arrivals:
    """Counts what a subject sees; cheap, since it runs once for each event inside of what is measured."""

    def __init__(self, timeout: float = TIMEOUT) -> None:
        self._timeout = timeout
        self.count = 0
        self.newest = 0
        """Highest resource version seen."""
        self.newest_at = 0.0
        """`time.monotonic()` at which it was seen."""
        self._is_reached: Callable[[], bool] = bool
        self._reached = asyncio.Event()

    def saw(self, resource_version: str) -> None:
        """An object of this version has reached the user's code."""
        version = int(resource_version)
        if version > self.newest:
            self.newest, self.newest_at = version, time.monotonic()
        self.step()

    def step(self) -> None:
        """One more thing is done."""
        self.count += 1
        if self._is_reached():
            self._reached.set()

    async def wait_for_count(self, count: int) -> None:
        """Wait until so many things have been seen.

        Raises:
            TimeoutError: it takes too long.
        """
        await self._wait(lambda: self.count >= count, f"{count} of them")

    async def wait_for_version(self, version: int) -> None:
        """Wait until this resource version or a later one has been seen.

        Raises:
            TimeoutError: it takes too long.
        """
        await self._wait(lambda: self.newest >= version, f"resource version {version}")

    async def _wait(self, is_reached: Callable[[], bool], what: str) -> None:
        self._reached.clear()
        self._is_reached = is_reached
        if is_reached():
            return
        try:
            async with asyncio.timeout(self._timeout):
                await self._reached.wait()
        except TimeoutError as error:
            raise TimeoutError(
                f"waited {self._timeout:.0f} s for {what}, saw {self.count}, the newest version {self.newest}"
            ) from error
