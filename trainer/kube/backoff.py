"""Exponential backoff: how long to wait after the n-th failure in a row."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Growth of the pause between attempts; the first pause is `initial` seconds."""

    initial: float
    maximum: float
    factor: float = 2.0
    jitter: float = 0.0
    """Each pause is drawn from [d, d * (1 + jitter)), so that many clients do not return together. Default: none."""

    def pause(self, failures: int) -> float:
        """Seconds to wait after this many earlier failures (0 before the first retry)."""
        try:
            seconds = min(self.initial * self.factor**failures, self.maximum)
        except OverflowError:
            seconds = self.maximum
        return seconds * (1 + self.jitter * random.random())  # noqa: S311 - spreads load, hides nothing
