"""Client: posts documents to webhooks over TLS."""

from __future__ import annotations

import errno
import json
import ssl
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import aiohttp
from yarl import URL

from trainer.kube.clock import move_on_after
from trainer_devcluster.apiserver.webhooks import endpoints
from trainer_devcluster.apiserver.webhooks.trust import TrustStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from trainer.kube.clock import Clock
    from trainer_devcluster.apiserver.storage.storage import Storage
    from trainer_devcluster.apiserver.webhooks.client_config import ClientConfig

MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024
_MESSAGES: Final = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}
_CERTIFICATE: Final = "tls: failed to verify certificate: x509: "
_UNTRUSTED: Final = frozenset({2, 18, 19, 20, 21})
"""OpenSSL's codes for chains that do not lead to a trusted certificate."""
_TIME_CODES: Final = frozenset({9, 10})
_HOST_CODES: Final = frozenset({62, 63, 64})


class PostError(Exception):
    """No proper answer came in time; the text is that of the real server."""


class WebhookClient:
    """Calls webhooks; made by `webhook_client`."""

    def __init__(self, session: aiohttp.ClientSession, storage: Storage, clock: Clock) -> None:
        self._session = session
        self._storage = storage
        self._clock = clock
        self._trust = TrustStore()

    async def post(self, client: ClientConfig, body: bytes, seconds: int) -> bytes:
        """The body of the answer to a JSON document.

        Args:
            client: where the webhook is.
            body: the document.
            seconds: after which time it has failed; the webhook gets it as `timeout`.

        Raises:
            TrustError: the authorities of the webhook cannot be read.
            PostError: it cannot be reached, refuses, or takes too long.
        """
        context = await self._trust.context(client.ca_bundle)
        url = f"{client.address}?timeout={seconds}s"
        code, content, is_text = 0, b"", False
        try:
            async with move_on_after(self._clock, seconds) as scope:
                try:
                    code, content, is_text = await self._exchange(client, url, body, context)
                except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ConnectionError) as error:
                    # The webhook may have closed an idle connection just when it was used again.
                    if isinstance(error, aiohttp.ClientConnectorError):
                        raise
                    code, content, is_text = await self._exchange(client, url, body, context)
        except (aiohttp.ClientError, endpoints.UnresolvedError, OSError, ValueError) as error:
            raise PostError(f'Post "{url}": {_described(error)}') from error
        if scope.cancelled_caught:
            raise PostError(f'Post "{url}": context deadline exceeded')
        if not 200 <= code <= 206:
            raise PostError(_refusal(code, content if is_text else b""))
        return content

    async def _exchange(
        self, client: ClientConfig, url: str, body: bytes, context: ssl.SSLContext
    ) -> tuple[int, bytes, bool]:
        """Code and body of one answer, and whether the body is text for people."""
        target = URL(url, encoded=True)
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "kube-apiserver"}
        # A little that is packed could be unpacked to more than any limit, and no review gains by it.
        headers["Accept-Encoding"] = "identity"
        options: dict[str, Any] = {}
        if client.service is not None:
            address = endpoints.resolve(self._storage, client.service)
            headers["Host"] = f"{client.server_name}:{client.service.port}"
            target = target.with_host(address.host).with_port(address.port)
            options["server_hostname"] = client.server_name
        posting = self._session.post(target, data=body, headers=headers, ssl=context, allow_redirects=False, **options)
        async with posting as response:
            is_text = response.headers.get("Content-Type", "text/plain").startswith("text/")
            content = bytearray()
            async for chunk in response.content.iter_any():
                content += chunk
                if len(content) > MAX_ANSWER_BYTES:
                    raise ValueError(f"the answer has more than {MAX_ANSWER_BYTES} bytes")
            return response.status, bytes(content), is_text


@asynccontextmanager
async def webhook_client(storage: Storage, clock: Clock) -> AsyncIterator[WebhookClient]:
    """A client whose connections last as long as the context."""
    # Each webhook has its own time limit, and calls do not wait for each other.
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=None)
    jar = aiohttp.DummyCookieJar()
    async with aiohttp.ClientSession(
        connector=connector, timeout=timeout, cookie_jar=jar, auto_decompress=False
    ) as session:
        yield WebhookClient(session, storage, clock)


def _refusal(code: int, content: bytes) -> str:
    """What a client of the real server's kind makes of an answer that is no success."""
    text = " ".join(content.decode(errors="replace").split()) or "unknown"
    if code >= 500 and code not in _MESSAGES:
        return f"an error on the server ({json.dumps(text)}) has prevented the request from succeeding"
    return (
        _MESSAGES.get(code) or f"the server responded with the status code {code} but did not return more information"
    )


def _described(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"dial tcp: lookup {error.host}: no such host"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return _described_certificate(error.certificate_error)
    if isinstance(error, aiohttp.ClientSSLError):
        cause = error.__cause__
        if isinstance(cause, ssl.SSLError) and cause.reason == "WRONG_VERSION_NUMBER":
            return "http: server gave HTTP response to HTTPS client"
        return f"remote error: tls: {getattr(cause, 'reason', None) or error}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"dial tcp {error.host}:{error.port}: connect: {_described_os_error(error.os_error)}"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "EOF"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "unexpected EOF"
    if isinstance(error, OSError):
        return _described_os_error(error)
    return " ".join(str(error).split())


def _described_certificate(error: Exception) -> str:
    code = getattr(error, "verify_code", None)
    message = str(getattr(error, "verify_message", None) or error)
    if code in _UNTRUSTED:
        return f"{_CERTIFICATE}certificate signed by unknown authority"
    if code in _TIME_CODES:
        return f"{_CERTIFICATE}certificate has expired or is not yet valid: {message}"
    if code in _HOST_CODES:
        return f"{_CERTIFICATE}certificate is not valid for the name it was asked for: {message}"
    return f"{_CERTIFICATE}{message}"


def _described_os_error(error: OSError) -> str:
    texts = {
        errno.ECONNREFUSED: "connection refused",
        errno.ECONNRESET: "connection reset by peer",
        errno.EHOSTUNREACH: "no route to host",
        errno.ENETUNREACH: "network is unreachable",
    }
    return texts.get(error.errno or 0) or (error.strerror or str(error)).lower()
