"""Body: what a peer sends, within limits of time and size, and how it is told that it has sent something else."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec
from aiohttp import web

from trainer.kube.clock import move_on_after
from trainer.kube.errors import KubeError
from trainer.kube.webhook.review import status

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

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
        max_buffered_bytes: size of all bodies together from which on one is refused.
        timeout: seconds that a body may take to arrive.
    """

    def __init__(self, clock: Clock, *, max_bytes: int, max_buffered_bytes: int, timeout: float) -> None:
        self._clock = clock
        self._max_bytes = max_bytes
        self._max_buffered_bytes = max_buffered_bytes
        self._buffered_bytes = 0
        self._timeout = timeout

    @asynccontextmanager
    async def reading(self, request: web.BaseRequest) -> AsyncIterator[bytes]:
        """The whole body of a JSON request, which counts as buffered within the context.

        Raises:
            HttpError: it is no JSON, too large, or does not arrive in time.
        """
        body = bytearray()
        try:
            yield await self._read(request, body)
        finally:
            self._buffered_bytes -= len(body)

    async def _read(self, request: web.BaseRequest, body: bytearray) -> bytes:
        if request.content_type != JSON:
            raise HttpError(
                415,
                "UnsupportedMediaType",
                f"Content-Type is {request.content_type!r}: send an AdmissionReview as {JSON}",
            )
        encoding = request.headers.get("Content-Encoding", "identity")
        if encoding.lower() != "identity":
            raise HttpError(415, "UnsupportedMediaType", f"Content-Encoding is {encoding!r}: send it as it is")
        # Before anything is read, where the client says how much there is.
        self._check_size(request.content_length or 0)
        await self._invite(request)
        async with move_on_after(self._clock, self._timeout):
            await self._read_all(request, body)
            return bytes(body)
        raise HttpError(408, "Timeout", f"the body did not arrive within {self._timeout:g} s")

    async def _invite(self, request: web.BaseRequest) -> None:
        """Answer a client that asks whether it shall send the body at all (RFC 9110, 10.1.1)."""
        expectation = request.headers.get("Expect", "")
        if expectation.lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            # As if nothing had been sent: this is not the answer.
            request.writer.output_size = 0
        elif expectation:
            raise HttpError(417, "ExpectationFailed", f"Expect is {expectation!r}: only 100-continue is met")

    async def _read_all(self, request: web.BaseRequest, body: bytearray) -> None:
        try:
            while chunk := await request.content.readany():
                body += chunk
                self._buffered_bytes += len(chunk)
                self._check_size(len(body))
                if self._buffered_bytes > self._max_buffered_bytes:
                    text = f"bodies of {self._max_buffered_bytes} bytes are being answered (max_buffered_bytes)"
                    raise HttpError(503, "ServiceUnavailable", text)
        except (web.RequestPayloadError, ConnectionError) as error:
            raise HttpError(400, "BadRequest", f"the body could not be read: {error}") from error

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
