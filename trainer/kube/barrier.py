"""Barrier: the work on one object holds up that object alone, whatever the object makes it raise.

A reconcile has this from `controller.worker`. A barrier is for work on objects that is no reconcile: handlers of
informers, followers of logs, what a recorder writes, and the steps of an explanation.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from trainer.kube.errors import KubeError, causes_of
from trainer.kube.logger import get_logger

log = get_logger(__name__)


class Attempt:
    """The work on one object."""

    error: Exception | None = None
    """What it raised."""


class Barrier:
    """Logs and counts what the work on single objects raises, so that it ends neither its siblings nor the process.

    As with a reconcile, a `KubeError` is what an API server may answer, and is logged as a warning; anything else is a
    mistake in the work, and is logged with its traceback. Cancellation is no error and passes.

    Args:
        event: of the log, such as "could not follow log".
        passing: errors that are not about one object. Default: none are.
        fields: part of every log event.
    """

    def __init__(self, event: str, *, passing: tuple[type[Exception], ...] = (), **fields: str) -> None:
        self.failures = 0
        """How many times the work has failed, with whichever object."""
        self._event = event
        self._fields = fields
        self._passing = passing

    @contextmanager
    def around(self, key: object) -> Iterator[Attempt]:
        """Work on the object of a key, by which the log names it."""
        attempt = Attempt()
        try:
            yield attempt
        except Exception as error:
            causes = causes_of(error)
            if any(isinstance(cause, self._passing) for cause in causes):
                raise
            attempt.error = error
            self.failures += 1
            about = {**self._fields, "object": str(key), "failures": self.failures}
            if all(isinstance(cause, KubeError) for cause in causes):
                log.warning(self._event, **about, error="; ".join(map(str, causes)))
            else:
                log.exception(self._event, **about)
