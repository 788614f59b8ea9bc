"""Body: what a peer sends, within limits of time and size, and how it is told that it has sent something else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from aiohttp import web

from trainer.kube.clock import move_on_after
from trainer.kube.errors import KubeError
from trainer.kube.webhook.review import status

if TYPE_CHECKING:
    from trainer.kube.clock import Clock

JSON = "application/json"


class HttpError(KubeError):
    """The request is answered with an HTTP status and a Status object, and not with a review."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


class BodyReader:
    """Reads bodies.

    Args:
        clock: measures the time.
        max_bytes: size from which on a body is refused.
        timeout: seconds that a body may take to arrive.
    """

    def __init__(self, clock: Clock, *, max_bytes: int, timeout: float) -> None:
        self._clock = clock
        self._max_bytes = max_bytes
        self._timeout = timeout

    async def read(self, request: web.BaseRequest) -> bytes:
        """The whole body of a JSON request.

        Raises:
            HttpError: it is no JSON, too large, or does not arrive in time.
        """
        if request.content_type != JSON:
            raise HttpError(
                415,
                "UnsupportedMediaType",
                f"Content-Type is {request.content_type!r}: send an AdmissionReview as {JSON}",
            )
        # Before anything is read, where the client says how much there is.
        self._check_size(request.content_length or 0)
        async with move_on_after(self._clock, self._timeout):
            return await self._read_all(request)
        raise HttpError(408, "Timeout", f"the body did not arrive within {self._timeout:g} s")

    async def _read_all(self, request: web.BaseRequest) -> bytes:
        body = bytearray()
        try:
            while chunk := await request.content.readany():
                body += chunk
                self._check_size(len(body))
        except (web.RequestPayloadError, ConnectionError) as error:
            raise HttpError(400, "BadRequest", f"the body could not be read: {error}") from error
        return bytes(body)

    def _check_size(self, size: int) -> None:
        if size > self._max_bytes:
            raise HttpError(
                413, "RequestEntityTooLarge", f"the body has more than {self._max_bytes} bytes (max_body_bytes)"
            )


def failure(error: HttpError, *, headers: dict[str, str] | None = None) -> web.Response:
    """The answer that tells of an error; the connection is not used again, since there may be more on it."""
    body = msgspec.json.encode(status(error.code, error.reason, str(error)))
    response = web.Response(status=error.code, body=body, content_type=JSON, headers=headers)
    response.force_close()
    return response
