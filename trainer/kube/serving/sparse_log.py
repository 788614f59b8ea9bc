"""Sparse log: what peers do wrong, written at most once in a while, since they decide how often they do it."""

from __future__ import annotations

import logging
from collections.abc import Callable

from trainer.kube.clock import Clock
from trainer.kube.logger import get_logger

log = get_logger(__name__)

SPARSE = 10.0
"""Seconds between two lines."""
LONGEST = 200
"""Characters of a text, which may quote what was sent."""


class SparseLog:
    """Writes one kind of warning; a line says how many there have been since the line before, as `times`.

    `fields` are part of every line.
    """

    def __init__(self, event: str, *, clock: Clock, **fields: str) -> None:
        self._event = event
        self._clock = clock
        self._fields = fields
        self._unwritten = 0
        self._written_at = clock.monotonic() - SPARSE

    def warning(self, **fields: str | int) -> None:
        """Write a line with these fields, or count it for the next one."""
        self._unwritten += 1
        now = self._clock.monotonic()
        if now - self._written_at >= SPARSE:
            cut = {name: value[:LONGEST] if isinstance(value, str) else value for name, value in fields.items()}
            log.warning(self._event, **self._fields, **cut, times=self._unwritten)
            self._written_at, self._unwritten = now, 0


class PeerLog(logging.LoggerAdapter[logging.Logger]):
    """The logger that aiohttp is given; what it logs with an exception is what peers have sent.

    `malformed` is called for each request that could not be read.
    """

    def __init__(self, server: str, *, clock: Clock, malformed: Callable[[], None]) -> None:
        super().__init__(logging.getLogger(__name__), {})
        self._malformed = malformed
        self._problems = SparseLog("trouble with connections", clock=clock, server=server)

    def log_problem(self, problem: str) -> None:
        """Log a problem, or count it for the next line."""
        self._problems.warning(problem=problem)

    def exception(self, msg: object, *args: object, exc_info: object = None, **_: object) -> None:
        """A request could not be read."""
        self._malformed()
        self.log_problem(f"{str(msg) % args}: {exc_info}")

    def debug(self, msg: object, *args: object, exc_info: object = None, **_: object) -> None:
        """A request that could not be read, which aiohttp logs at level DEBUG; its other messages are dropped."""
        if exc_info is not None:
            self.exception(msg, *args, exc_info=exc_info)
