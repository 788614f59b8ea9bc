"""Peer log: what peers of an HTTP server do wrong, written sparsely, since they decide how often they do it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from trainer.kube.serving.sparse_log import SparseLog

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainer.kube.clock import Clock


class PeerLog(logging.LoggerAdapter[logging.Logger]):
    """The logger that aiohttp is given; what it logs with an exception is what peers have sent.

    Args:
        server: name of the server, for the lines.
        clock: for the pauses between lines.
        malformed: called for each request that could not be read.
    """

    def __init__(self, server: str, *, clock: Clock, malformed: Callable[[], None]) -> None:
        super().__init__(logging.getLogger(__name__), {})
        self._malformed = malformed
        self._complaints = SparseLog("trouble with connections", clock=clock, server=server)

    def complain(self, problem: str) -> None:
        """Tell of a problem, or count it for the next line."""
        self._complaints.warning(problem=problem)

    def exception(self, msg: object, *args: object, exc_info: object = None, **_: object) -> None:
        """A request could not be read."""
        self._malformed()
        self.complain(f"{str(msg) % args}: {exc_info}")

    def debug(self, msg: object, *args: object, exc_info: object = None, **_: object) -> None:
        """The same, where aiohttp takes it for usual; it is silent about all else."""
        if exc_info is not None:
            self.exception(msg, *args, exc_info=exc_info)
