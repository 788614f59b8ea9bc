"""Body: what a peer sends, within limits of time and size, and the refusal of anything else."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING

import msgspec
from aiohttp import web

from trainer.kube.clock import move_on_after
from trainer.kube.errors import KubeError
from trainer.kube.webhook.budget import Budget
from trainer.kube.webhook.review import status

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine
    from types import TracebackType

    from trainer.kube.clock import Clock

JSON = "application/json"

SMALL = 64 * 1024
"""Bytes of a body that waits for no others: most reviews, which the number of connections bounds well enough."""


class HttpError(KubeError):
    """The request is answered with an HTTP status and a Status object, and not with a review.

    Args:
        code: HTTP status.
        reason: a metav1.StatusReason.
        message: what is wrong.
        retry_after: seconds after which it may be tried again; an API server does so, up to ten times, while the time
            for the webhook lasts. Default: None, it would be of no use.
    """

    def __init__(self, code: int, reason: str, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.retry_after = retry_after


def overloaded(message: str) -> HttpError:
    """There is too much to do just now."""
    return HttpError(503, "ServiceUnavailable", message, retry_after=1)


class BodyReader:
    """Reads bodies.

    Args:
        clock: measures the time.
        max_bytes: size from which on a body is refused.
        max_buffered_bytes: size of all bodies together, except for small ones; others wait before they are read.
        timeout: seconds that a body may take to arrive, and as many that it may wait for its turn.
        content: what is to be sent, for messages.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        max_bytes: int,
        max_buffered_bytes: int,
        timeout: float,
        content: str = "an AdmissionReview",
    ) -> None:
        self._clock = clock
        self._content = content
        self._max_bytes = max_bytes
        self._buffers = Budget(max(max_buffered_bytes, max_bytes))
        self._timeout = timeout

    def reading(self, request: web.BaseRequest) -> AbstractAsyncContextManager[bytearray]:
        """The whole body of a JSON request, which counts as buffered within the context.

        Raises:
            HttpError: it is too large, no JSON, or does not arrive in time.
        """
        self._check_head(request)
        # One that does not say how large it is may be as large as allowed.
        length = request.content_length
        size = self._max_bytes if length is None else length
        return self._buffered(request, size) if size > SMALL else _Small(self._body(request))

    @asynccontextmanager
    async def _buffered(self, request: web.BaseRequest, size: int) -> AsyncIterator[bytearray]:
        await self._buffer(size)
        try:
            yield await self._body(request)
        finally:
            self._buffers.release(size)

    async def _buffer(self, size: int) -> None:
        try:
            await self._buffers.acquire(size, self._clock, self._timeout)
        except TimeoutError:
            text = f"bodies of {self._buffers.total} bytes are being answered (max_buffered_bytes)"
            raise overloaded(text) from None

    def _check_head(self, request: web.BaseRequest) -> None:
        """What is known before anything is read."""
        if request.content_type != JSON:
            raise HttpError(
                415,
                "UnsupportedMediaType",
                f"Content-Type is {request.content_type!r}: send {self._content} as {JSON}",
            )
        encoding = request.headers.get("Content-Encoding", "identity")
        if encoding.lower() != "identity":
            raise HttpError(415, "UnsupportedMediaType", f"Content-Encoding is {encoding!r}: send it as it is")
        self._check_size(request.content_length or 0)

    async def _body(self, request: web.BaseRequest) -> bytearray:
        await self._invite(request)
        body = bytearray()
        if request.content.is_eof():  # most bodies come with their head
            await self._read_all(request, body)
            return body
        async with move_on_after(self._clock, self._timeout):
            await self._read_all(request, body)
            return body
        raise HttpError(408, "Timeout", f"the body did not arrive within {self._timeout:g} s")

    async def _invite(self, request: web.BaseRequest) -> None:
        """Answer a client that asks whether it shall send the body at all (RFC 9110, 10.1.1)."""
        expectation = request.headers.get("Expect", "")
        if expectation.lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            # As if nothing had been sent: this is not the answer.
            request.writer.output_size = 0
        elif expectation:
            raise HttpError(417, "ExpectationFailed", f"Expect is {expectation!r}: only 100-continue is supported")

    async def _read_all(self, request: web.BaseRequest, body: bytearray) -> None:
        try:
            while chunk := await request.content.readany():
                body += chunk
                self._check_size(len(body))
        except (web.RequestPayloadError, ConnectionError) as error:
            raise HttpError(400, "BadRequest", f"the body could not be read: {error}") from error

    def _check_size(self, size: int) -> None:
        if size > self._max_bytes:
            raise HttpError(
                413, "RequestEntityTooLarge", f"the body has more than {self._max_bytes} bytes (max_body_bytes)"
            )


class _Small:
    """The context of a body that counts as nothing, which most reviews have."""

    __slots__ = ("_body",)

    def __init__(self, body: Coroutine[object, object, bytearray]) -> None:
        self._body = body

    async def __aenter__(self) -> bytearray:
        return await self._body

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass


def failure(error: HttpError, *, headers: dict[str, str] | None = None) -> web.Response:
    """The answer for an error; the connection is closed, since the rest of the body may follow."""
    body = msgspec.json.encode(status(error.code, error.reason, str(error)))
    if error.retry_after is not None:
        headers = (headers or {}) | {"Retry-After": str(error.retry_after)}
    response = web.Response(status=error.code, body=body, content_type=JSON, headers=headers)
    response.force_close()
    return response
