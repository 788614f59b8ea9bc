"""Which requests the client sends again, and when."""

from __future__ import annotations

import aiohttp
import pytest

from trainer.kube.errors import ApiError, TransportError, error_from_status
from trainer.kube.rest.failures import BrokenConnectionError
from trainer.kube.rest.retries import pause_before_retry


def answer(code: int, retry_after: int | None = None, cause: str | None = None) -> ApiError:
    details = {"retryAfterSeconds": retry_after, "causes": [{"reason": cause}] if cause else None}
    return error_from_status(code, {"details": details})


def no_answer(cause: Exception) -> TransportError:
    error = TransportError("no answer")
    error.__cause__ = cause
    return error


BROKEN = no_answer(BrokenConnectionError("reset"))
RETRY_BACKOFF = (0.1, 0.15)


@pytest.mark.parametrize(
    ("method", "error", "failures", "expected"),
    [
        pytest.param("POST", answer(429, 7), 0, (7, 7), id="429"),
        pytest.param("PATCH", answer(503, 7), 9, (7, 7), id="503-tenth"),
        pytest.param("GET", answer(503, 7), 10, None, id="503-eleventh"),
        pytest.param("PUT", answer(500, 1), 0, (1, 1), id="500-with-retry-after"),
        pytest.param("DELETE", answer(504, 1), 0, (1, 1), id="504-with-retry-after"),
        pytest.param("GET", answer(429, 3600), 0, (60, 60), id="bounded"),
        pytest.param("GET", answer(429, 0), 0, (0, 0), id="at-once"),
        pytest.param("GET", answer(504, 1, "ResourceVersionTooLarge"), 0, None, id="too-large-resource-version"),
        pytest.param("GET", answer(404, 1), 0, None, id="404-with-retry-after"),
        pytest.param("GET", answer(429), 0, RETRY_BACKOFF, id="get-429"),
        pytest.param("GET", answer(503), 4, (1.6, 2.4), id="get-503-fifth"),
        pytest.param("GET", answer(503), 5, None, id="get-503-sixth"),
        pytest.param("GET", answer(500), 0, None, id="get-500"),
        pytest.param("GET", answer(504), 0, None, id="get-504"),
        pytest.param("POST", answer(503), 0, None, id="post-503"),
        pytest.param("GET", BROKEN, 0, RETRY_BACKOFF, id="get-broken"),
        pytest.param("GET", no_answer(aiohttp.ClientPayloadError()), 0, RETRY_BACKOFF, id="get-cut-off"),
        pytest.param("GET", BROKEN, 5, None, id="get-broken-sixth"),
        *[pytest.param(method, BROKEN, 0, None, id=f"{method.lower()}-broken") for method in
          ("POST", "PUT", "PATCH", "DELETE")],
        pytest.param("GET", no_answer(aiohttp.SocketTimeoutError()), 0, None, id="get-timeout"),
        pytest.param("GET", no_answer(ConnectionRefusedError()), 0, None, id="get-refused"),
    ],
)  # fmt: skip
def test_retries(
    method: str, error: TransportError | ApiError, failures: int, expected: tuple[float, float] | None
) -> None:
    """The table in the module's documentation holds."""
    pause = pause_before_retry(method, error, failures)
    if expected is None:
        assert pause is None
    else:
        assert pause is not None
        assert expected[0] <= pause <= expected[1]
