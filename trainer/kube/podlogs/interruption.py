"""Why a log has to be asked for again, and when."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from trainer.kube.errors import ApiError, BadRequestError, GoneError, TooManyRequestsError, TransportError

if TYPE_CHECKING:
    from trainer.kube.backoff import Backoff

LONGEST_REQUESTED_PAUSE = 60.0
"""Seconds; a server that asks for more is asked again earlier."""


class Interruption(StrEnum):
    """Why the reading of a log was interrupted; few enough values for a label of a metric."""

    ENDED = "ended"
    """The server ended the stream although the container is not known to have ended for good: it is about to be
    restarted, or its end has not become known yet, or an API server or proxy limits the time of connections."""
    BROKEN = "broken"
    """The connection broke, or could not be made."""
    SILENT = "silent"
    """Nothing was heard for the idle timeout."""
    WAITING = "waiting"
    """400: the container has not started."""
    GONE = "gone"
    """410."""
    THROTTLED = "throttled"
    """429."""
    FAILED = "failed"
    """5xx or another answer that is none of these, such as of a node that cannot be reached."""


def interruption_of(error: TransportError | ApiError, *, was_connected: bool) -> Interruption:
    """The kind of a failure."""
    match error:
        case TransportError():
            is_timeout = isinstance(error.__cause__, TimeoutError)
            return Interruption.SILENT if is_timeout and was_connected else Interruption.BROKEN
        case BadRequestError():
            return Interruption.WAITING
        case GoneError():
            return Interruption.GONE
        case TooManyRequestsError():
            return Interruption.THROTTLED
        case _:
            return Interruption.FAILED


class Pauses:
    """How long to wait before a log is asked for again: longer each time, until reading works again.

    Args:
        retry: pauses, which are added to what the server asks for, so that its clients do not return together.
    """

    __slots__ = ("_failures", "_last", "_retry")

    def __init__(self, retry: Backoff) -> None:
        self._retry = retry
        self._failures = 0
        self._last = 0.0

    def after(self, error: TransportError | ApiError | None, proof: float) -> float:
        """Seconds to wait after an interruption.

        Args:
            error: what went wrong; None: the stream merely ended.
            proof: seconds for which reading worked; if longer than the last pause, it was no failure in a row.
        """
        if proof > self._last:
            self._failures = 0
        pause = self._retry.pause(self._failures)
        if isinstance(error, ApiError) and (requested := error.retry_after_seconds) is not None:
            pause += min(requested, LONGEST_REQUESTED_PAUSE)
        self._failures += 1
        self._last = pause
        return pause
