"""When the client itself sends a request again, before its caller hears of a failure.

| what happened | which requests | how often | pause |
|---|---|---|---|
| 429 or 5xx with Retry-After | all: the server says when to come back | 10 | as it says, at most 60 s |
| 429 or 503 without | GET | 5 | 100 ms doubling to 1.6 s, with jitter |
| the connection broke | GET | 5 | the same |

The first row is client-go's, and API servers count on it. After a 504 the repeated write may find that the first one
was carried out after all (AlreadyExists, Conflict), as with client-go. The bounds keep one request from holding a
worker for more than ten minutes; the caller, who has a backoff of its own, may come back later. One error is left out:
the server cannot reach the resource version that was asked for (ResourceVersionTooLarge); the reflector has a better
answer than to ask again.

A write whose connection broke may have been carried out. PUT, PATCH and DELETE would be idempotent on paper, but their
second answer misleads: a Conflict with our own write, a NotFound for what we deleted ourselves. Whoever wrote looks at
the present state first, which is what a reconcile does. A refused connection is not repeated either: reflectors and
work queues have backoffs of their own, and a person at a terminal wants to know at once.
"""

from __future__ import annotations

from trainer.kube.backoff import Backoff
from trainer.kube.errors import (
    ApiError,
    ServiceUnavailableError,
    TooManyRequestsError,
    TransportError,
    UntrustedServerError,
)
from trainer.kube.rest.failures import is_broken_connection

REQUESTED_RETRIES = 10
LONGEST_PAUSE = 60.0
MAX_RETRIES = 5
RETRY_BACKOFF = Backoff(initial=0.1, maximum=10.0, jitter=0.5)


def pause_before_retry(method: str, error: TransportError | ApiError, failures: int) -> float | None:
    """Seconds to wait before the request is sent again; None when that is for the caller to decide.

    `failures` is the number of attempts that failed before the last one.
    """
    if isinstance(error, ApiError):
        requested = _requested_pause(error)
        if requested is not None:
            return requested if failures < REQUESTED_RETRIES else None
        transient = isinstance(error, TooManyRequestsError | ServiceUnavailableError)
    else:
        transient = is_broken_connection(error.__cause__) and not isinstance(error, UntrustedServerError)
    if not transient or method != "GET" or failures >= MAX_RETRIES:
        return None
    return RETRY_BACKOFF.pause(failures)


def _requested_pause(error: ApiError) -> float | None:
    if error.code != 429 and error.code < 500:
        return None
    if error.has_cause("ResourceVersionTooLarge"):
        return None
    seconds = error.retry_after_seconds
    return min(seconds, LONGEST_PAUSE) if seconds is not None else None
