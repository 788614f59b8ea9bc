"""Peer log: what peers of an HTTP server do wrong, told now and then, since they decide how often they do it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainer.kube.clock import Clock

log = structlog.get_logger(__name__)

SPARSE = 10.0
"""Seconds between two lines of one server."""
LONGEST = 200
"""Characters of what is told, which may quote what was sent."""


class PeerLog(logging.LoggerAdapter[logging.Logger]):
    """The logger that aiohttp is given; what it logs with an exception is what peers have sent.

    Args:
        server: name of the server, for the lines.
        clock: for the pauses between lines.
        malformed: called for each request that could not be read.
    """

    def __init__(self, server: str, *, clock: Clock, malformed: Callable[[], None]) -> None:
        super().__init__(logging.getLogger(__name__), {})
        self._server = server
        self._clock = clock
        self._malformed = malformed
        self._untold = 0
        self._told = clock.monotonic() - SPARSE

    def complain(self, problem: str) -> None:
        """Tell of a problem, or count it for the next line."""
        self._untold += 1
        now = self._clock.monotonic()
        if now - self._told >= SPARSE:
            log.warning("trouble with connections", server=self._server, problem=problem[:LONGEST], times=self._untold)
            self._told, self._untold = now, 0

    def exception(self, msg: object, *args: object, exc_info: object = None, **_: object) -> None:
        """A request could not be read."""
        self._malformed()
        self.complain(f"{str(msg) % args}: {exc_info}")

    def debug(self, msg: object, *args: object, exc_info: object = None, **_: object) -> None:
        """The same, where aiohttp takes it for usual; it is silent about all else."""
        if exc_info is not None:
            self.exception(msg, *args, exc_info=exc_info)
