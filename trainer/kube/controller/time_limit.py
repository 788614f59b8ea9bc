"""Time limit: one limit for many pieces of work that run at the same time, kept by a single timer.

`clock.move_on_after` starts a task each time, which takes ten times as long as a small reconcile.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.kube.clock import Clock


class TimeLimit:
    """Cancels what takes longer than so many seconds, as long as `run` runs."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self.seconds = seconds
        self._clock = clock
        # The limit is the same for all, so that the first to begin is the first to be over.
        self._due: OrderedDict[anyio.CancelScope, float] = OrderedDict()
        self._begun = anyio.Event()

    @contextmanager
    def limit(self) -> Iterator[anyio.CancelScope]:
        """Limit the body; afterwards `scope.cancelled_caught` tells whether it was cancelled for its time."""
        with anyio.CancelScope() as scope:
            self._due[scope] = self._clock.monotonic() + self.seconds
            self._begun.set()
            try:
                yield scope
            finally:
                self._due.pop(scope, None)

    async def run(self) -> None:
        """Keep the time until cancelled."""
        while True:
            if not self._due:
                self._begun = anyio.Event()
                await self._begun.wait()
            first = next(iter(self._due.values()), None)
            if first is not None:
                await self._clock.sleep(first - self._clock.monotonic())
                self._cancel_due()

    def _cancel_due(self) -> None:
        now = self._clock.monotonic()
        while self._due:
            scope, due = next(iter(self._due.items()))
            if due > now:
                return
            del self._due[scope]
            scope.cancel()
