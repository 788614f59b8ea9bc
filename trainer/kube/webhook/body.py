"""Body: what a peer sends, of limited size, and the refusal of anything else."""

from __future__ import annotations

import msgspec
from aiohttp import web

from trainer.kube.errors import KubeError
from trainer.kube.webhook.review import status

JSON = "application/json"


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


async def read_body(request: web.BaseRequest, max_bytes: int, *, content: str = "an AdmissionReview") -> bytearray:
    """The whole body of a JSON request; the caller limits the time.

    Args:
        request: its head has arrived.
        max_bytes: size of the largest body.
        content: what is to be sent, for messages. Default: that of a webhook.

    Raises:
        HttpError: it is too large or no JSON, or the peer went away.
    """
    _check_head(request, max_bytes, content)
    await _invite(request)
    body = bytearray()
    try:
        while chunk := await request.content.readany():
            body += chunk
            _check_size(len(body), max_bytes)
    except (web.RequestPayloadError, ConnectionError) as error:
        raise HttpError(400, "BadRequest", f"the body could not be read: {error}") from error
    return body


def _check_head(request: web.BaseRequest, max_bytes: int, content: str) -> None:
    """What is known before anything is read."""
    if request.content_type != JSON:
        text = f"Content-Type is {request.content_type!r}: send {content} as {JSON}"
        raise HttpError(415, "UnsupportedMediaType", text)
    encoding = request.headers.get("Content-Encoding", "identity")
    if encoding.lower() != "identity":
        raise HttpError(415, "UnsupportedMediaType", f"Content-Encoding is {encoding!r}: send it as it is")
    _check_size(request.content_length or 0, max_bytes)


def _check_size(size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise HttpError(413, "RequestEntityTooLarge", f"the body has more than {max_bytes} bytes")


async def _invite(request: web.BaseRequest) -> None:
    """Answer a client that asks whether it shall send the body at all (RFC 9110, 10.1.1)."""
    expectation = request.headers.get("Expect", "")
    if expectation.lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        # As if nothing had been sent: this is not the answer.
        request.writer.output_size = 0
    elif expectation:
        raise HttpError(417, "ExpectationFailed", f"Expect is {expectation!r}: only 100-continue is supported")


def failure(error: HttpError, *, headers: dict[str, str] | None = None) -> web.Response:
    """The answer for an error; the connection is closed, since the rest of the body may follow."""
    body = msgspec.json.encode(status(error.code, error.reason, str(error)))
    if error.retry_after is not None:
        headers = (headers or {}) | {"Retry-After": str(error.retry_after)}
    response = web.Response(status=error.code, body=body, content_type=JSON, headers=headers)
    response.force_close()
    return response
