"""How often, and after how long, a request that was interrupted is repeated."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeVar

from trainer_initializers.errors import InterruptedTransferError, UnavailableSourceError

Result = TypeVar("Result")

ATTEMPTS = 8
"""Requests in a row without a byte: about two minutes at the default interval, longer than a server restarts."""
_LONGEST_WAIT = 60.0


class Retries:
    """Exponential backoff with full jitter, as recommended for S3."""

    def __init__(self, interval: float, sleep: Callable[[float], None]) -> None:
        self._interval, self._sleep = interval, sleep

    def wait(self, attempts: int, error: InterruptedTransferError, what: str) -> None:
        """Wait after so many attempts in a row.

        Raises:
            UnavailableSourceError: there were enough of them.
        """
        if attempts >= ATTEMPTS:
            raise UnavailableSourceError(f"{what}: {error}, {attempts} times in a row: try again later") from error
        longest = min(self._interval * 2**attempts, _LONGEST_WAIT)
        self._sleep(max(error.retry_after, random.uniform(longest / 2, longest)))  # noqa: S311 jitter is no secret

    def call(self, function: Callable[[], Result]) -> Result:
        """What the function returns, which is called again when it is interrupted."""
        attempts = 0
        while True:
            try:
                return function()
            except InterruptedTransferError as error:
                attempts += 1
                self.wait(attempts, error, "the source does not answer")
