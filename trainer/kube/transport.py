"""HTTP to one API server: connection pools, credentials, retries, and failures as typed errors."""

from __future__ import annotations

import re
import socket
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

import aiohttp
import anyio
import msgspec
import structlog
import yarl

from trainer.kube.backoff import Backoff
from trainer.kube.clock import Clock, SystemClock
from trainer.kube.errors import (
    ApiError,
    ServiceUnavailableError,
    TooManyRequestsError,
    TransportError,
    UnauthorizedError,
    error_from_status,
)

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
    from types import TracebackType

    from trainer.kube.credentials import Credentials

log = structlog.get_logger(__name__)

_T = TypeVar("_T")

CONNECT_TIMEOUT = 30.0
READ_TIMEOUT = 70.0
"""Seconds without a byte from the server; it ends requests by itself after 60 s."""

RETRIES = 5
RETRY = Backoff(initial=0.1, maximum=10.0, jitter=0.5)
LONGEST_RETRY_AFTER = 60.0

_KEEPALIVE = ((socket.TCP_KEEPIDLE, 30), (socket.TCP_KEEPINTVL, 15), (socket.TCP_KEEPCNT, 4))
"""HTTP/1.1 has no ping: this finds a dead peer of an idle watch within 90 s."""


_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where an API server is and how to recognise it."""

    server: str
    """Base URL, possibly with a path."""
    namespace: str = "default"
    """Namespace of the kubeconfig context, for callers that name none."""
    ssl_context: ssl.SSLContext | None = None
    """CA and client certificate; None for plain HTTP."""
    server_hostname: str | None = None
    """Name in the server's certificate where it differs from the URL."""
    proxy: str | None = None
    """URL of an HTTP proxy."""


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request."""

    method: str
    path: str
    params: Mapping[str, str | int | bool | None]
    """Query; None and "" are left out."""
    body: bytes | None = None
    """JSON, unless the headers say otherwise."""
    headers: Mapping[str, str] = field(default_factory=dict)


class Transport:
    """An open connection to an API server; use it as an async context manager.

    Plain requests and streams (watches, logs) have separate connection pools, since each stream holds a connection for
    minutes. GET is retried when the connection breaks, everything when the server answers 429 or 503 with a time to
    come back; at most five times.
    """

    def __init__(
        self, endpoint: Endpoint, credentials: Credentials, *, user_agent: str, clock: Clock | None = None
    ) -> None:
        self.endpoint = endpoint
        self._base = endpoint.server.rstrip("/")
        self._credentials = credentials
        self._user_agent = user_agent
        self._clock = clock or SystemClock()

    async def __aenter__(self) -> Self:
        self._requests = self._session(limit=100)
        self._streams = self._session(limit=0)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            await self._requests.close()
            await self._streams.close()

    def _session(self, limit: int) -> aiohttp.ClientSession:
        ssl_context = self.endpoint.ssl_context
        connector = aiohttp.TCPConnector(
            limit=limit, ssl=True if ssl_context is None else ssl_context, socket_factory=_keepalive_socket
        )
        return aiohttp.ClientSession(
            connector=connector,
            headers={"User-Agent": self._user_agent, "Accept": "application/json"},
            cookie_jar=aiohttp.DummyCookieJar(),
            proxy=self.endpoint.proxy,
        )

    async def fetch(self, request: Request) -> bytes:
        """Send a request and return the body of a 2xx answer.

        Raises:
            ApiError: any other answer.
            TransportError: no answer.
        """
        timeout = aiohttp.ClientTimeout(sock_connect=CONNECT_TIMEOUT, sock_read=READ_TIMEOUT)

        async def attempt() -> bytes:
            response = await self._open(self._requests, request, timeout)
            try:
                return await self._read(request, response)
            finally:
                response.release()

        return await self._retrying(request, attempt)

    @asynccontextmanager
    async def stream(
        self, request: Request, *, idle_timeout: float | None = None
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Send a request and read the body of a 2xx answer in chunks as they arrive.

        Args:
            request: the request.
            idle_timeout: seconds without a byte after which `TransportError` is raised; default None: wait for ever.
        """
        timeout = aiohttp.ClientTimeout(sock_connect=CONNECT_TIMEOUT, sock_read=idle_timeout)
        response = await self._retrying(request, partial(self._open, self._streams, request, timeout))
        try:
            async with aclosing(self._chunks(request, response)) as chunks:
                yield chunks
        finally:
            # Closes the connection, unless the body was read to its end.
            response.release()

    async def _retrying(self, request: Request, attempt: Callable[[], Awaitable[_T]]) -> _T:
        failures = 0
        while True:
            try:
                return await attempt()
            except (TransportError, ApiError) as error:
                pause = _pause_before_retry(request, error, failures)
                if pause is None:
                    raise
                log.debug("retrying request", method=request.method, path=request.path, error=str(error), pause=pause)
            failures += 1
            await self._clock.sleep(pause)

    async def _open(
        self, session: aiohttp.ClientSession, request: Request, timeout: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        """A 2xx answer, which the caller must release; a 401 leads to one more attempt with renewed credentials."""
        authorization = await self._credentials.authorization()
        response = await self._send(session, request, timeout, authorization)
        if response.status == 401:
            response.release()
            renewed = await self._credentials.renew(authorization)
            if renewed is None:
                raise UnauthorizedError(401, "the API server does not accept the credentials")
            response = await self._send(session, request, timeout, renewed)
        _log_warnings(request, response)
        if response.status < 300:
            return response
        try:
            body = await self._read(request, response)
        finally:
            response.release()
        raise _error(response, body)

    async def _read(self, request: Request, response: aiohttp.ClientResponse) -> bytes:
        with self._transport_errors(request):
            return await response.read()

    async def _chunks(self, request: Request, response: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
        with self._transport_errors(request):
            async for chunk in response.content.iter_any():
                yield chunk

    async def _send(
        self,
        session: aiohttp.ClientSession,
        request: Request,
        timeout: aiohttp.ClientTimeout,
        authorization: str | None,
    ) -> aiohttp.ClientResponse:
        headers = {"Content-Type": "application/json"} if request.body is not None else {}
        headers |= request.headers
        if authorization:
            headers["Authorization"] = authorization
        with self._transport_errors(request):
            return await session.request(
                request.method,
                yarl.URL(self._base + request.path),
                params={name: _text(value) for name, value in request.params.items() if value not in {None, ""}},
                data=request.body,
                headers=headers,
                timeout=timeout,
                allow_redirects=False,
                server_hostname=self.endpoint.server_hostname,
            )

    @contextmanager
    def _transport_errors(self, request: Request) -> Iterator[None]:
        try:
            yield
        except TimeoutError as error:
            raise TransportError(f"{request.method} {self._base}{request.path}: timed out: {error}") from error
        except (aiohttp.ClientError, OSError) as error:
            raise TransportError(f"{request.method} {self._base}{request.path}: {error}") from error


def _keepalive_socket(address: tuple[Any, ...]) -> socket.socket:
    family, kind, protocol, *_ = address
    sock = socket.socket(family, kind, protocol)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE:
        sock.setsockopt(socket.IPPROTO_TCP, option, value)
    return sock


def _text(value: str | int | bool | None) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _pause_before_retry(request: Request, error: TransportError | ApiError, failures: int) -> float | None:
    """Seconds to wait before the request is sent again; None when that is not for us to decide."""
    if failures >= RETRIES:
        return None
    if isinstance(error, TooManyRequestsError | ServiceUnavailableError) and error.retry_after_seconds is not None:
        return min(error.retry_after_seconds, LONGEST_RETRY_AFTER)
    if request.method != "GET":
        return None
    if isinstance(error, TooManyRequestsError | ServiceUnavailableError) or _is_broken_connection(error):
        return RETRY.pause(failures)
    return None


def _is_broken_connection(error: TransportError | ApiError) -> bool:
    """Whether the server went away, as opposed to not being there, not being trusted, or being slow."""
    return isinstance(
        error.__cause__,
        aiohttp.ServerDisconnectedError | aiohttp.ClientPayloadError | ConnectionResetError | BrokenPipeError,
    ) or (
        isinstance(error.__cause__, aiohttp.ClientOSError)
        and not isinstance(error.__cause__, aiohttp.ClientConnectorError)
    )


def _error(response: aiohttp.ClientResponse, body: bytes) -> ApiError:
    try:
        status = msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError:
        status = {"message": body.decode(errors="replace").strip()[:1000]}
    retry_after = response.headers.get("Retry-After", "")
    if retry_after.isdigit():
        details = status.setdefault("details", {})
        if isinstance(details, dict):
            details.setdefault("retryAfterSeconds", int(retry_after))
    return error_from_status(response.status, status)


def _log_warnings(request: Request, response: aiohttp.ClientResponse) -> None:
    """Pass on what the API server wants its users to read (RFC 9111 Warning headers, such as deprecations)."""
    for header in response.headers.getall("Warning", ()):
        for text in _WARNING.findall(header):
            log.warning("the API server warns", path=request.path, warning=re.sub(r"\\(.)", r"\1", text))
