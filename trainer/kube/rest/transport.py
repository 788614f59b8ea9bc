"""HTTP to one API server: connection pools, credentials, TLS, retries, the client's rate limit and its metrics."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar
from urllib.parse import urlsplit

import aiohttp
import anyio
import yarl
from multidict import CIMultiDict

from trainer.kube.clock import Clock, SystemClock
from trainer.kube.errors import ApiError, ConfigurationError, TransportError, UnauthorizedError
from trainer.kube.logger import get_logger
from trainer.kube.metrics import Metrics
from trainer.kube.metrics.requests import RequestMetrics
from trainer.kube.rest.credentials import Credentials, Identity
from trainer.kube.rest.failures import answer_error, transport_error
from trainer.kube.rest.fair_scheduler import FairScheduler
from trainer.kube.rest.paced_stream import paced_chunks
from trainer.kube.rest.pool import UpgradeRefusedError, end_with_connection, open_pool
from trainer.kube.rest.rate_limiter import RateLimiter
from trainer.kube.rest.request import Request
from trainer.kube.rest.retries import pause_before_retry
from trainer.kube.rest.tls import ClientTls, ReloadingTls

WarningHandler: TypeAlias = Callable[[str, str], None]
"""Gets the path of a request and a warning beside its answer, such as that an API version is deprecated."""

log = get_logger(__name__)

_T = TypeVar("_T")

CONNECT_TIMEOUT = 30.0
READ_TIMEOUT = 70.0
"""Seconds without a byte from the server; it ends requests by itself after 60 s."""

REQUEST_CONNECTIONS = 100
"""Requests that are under way at once; further ones wait. Streams have no limit."""

CLOSE_TIMEOUT = 1.0
"""Seconds that a server has to agree to the end of a WebSocket."""

LONG_WAIT = 1.0
"""Seconds that are worth a line in the log: of the client's own rate limit, or of a pause before a retry."""

STREAMS_PER_ROUND = 4
"""Paced streams that are read in one round of the event loop; others wait for the next.

A write takes ten rounds or more, so what a round takes is what a write takes tenfold.
"""


_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')
"""The text of a Warning header (RFC 9111); others than those of code 299 are not for users."""


def log_warning(path: str, warning: str) -> None:
    """Write a warning of the API server into the log."""
    log.warning("the API server warns", path=path, warning=warning)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where an API server is and how to recognise it."""

    server: str
    """Base URL, possibly with a path."""
    namespace: str = "default"
    """Namespace of the kubeconfig context, for callers that name none."""
    tls: ClientTls | None = None
    """CA and client certificate. Default: None, for an http:// server or the CAs of the machine."""
    server_hostname: str | None = None
    """Name in the server's certificate where it differs from the URL."""
    proxy: str | None = None
    """URL of an HTTP proxy; see `trainer.kube.rest.proxy`."""
    context: str = ""
    """The kubeconfig context that names it. Default: none, as in a pod."""


class Transport:
    """An open connection to an API server; use it as an async context manager.

    Plain requests and streams (watches, logs) have separate connection pools, since each stream holds a connection for
    minutes. `rest.retries` says which requests are sent more than once. Each attempt passes the rate limit and is
    counted; a stream does so only when it is opened.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        credentials: Credentials,
        *,
        user_agent: str,
        clock: Clock | None = None,
        rate_limiter: RateLimiter | None = None,
        metrics: Metrics | None = None,
        warn: WarningHandler = log_warning,
    ) -> None:
        self.endpoint = endpoint
        self._base = endpoint.server.rstrip("/")
        self._url = str(yarl.URL(self._base)).rstrip("/")
        self._credentials = credentials
        self._headers = {"User-Agent": user_agent, "Accept": "application/json"}
        self._body_headers = {**self._headers, "Content-Type": "application/json"}
        self.clock = clock or SystemClock()
        self._rate_limiter = rate_limiter
        self._metrics = RequestMetrics(metrics or Metrics(), urlsplit(self._base).netloc)
        self._warn = warn
        self._request_timeout = _timeout(READ_TIMEOUT)
        self._scheduler = FairScheduler(per_round=STREAMS_PER_ROUND)
        self._tls: ReloadingTls | None = None
        self._tls_of_others: ReloadingTls | None = None
        self._impersonation: tuple[tuple[str, str], ...] = ()
        if endpoint.tls is not None:
            self._tls = ReloadingTls(endpoint.tls, clock=self.clock, metrics=self._metrics)
            without_certificate = replace(endpoint.tls, certificate=None, key=None)
            self._tls_of_others = ReloadingTls(without_certificate, clock=self.clock, metrics=self._metrics)

    async def __aenter__(self) -> Self:
        """Open the pools.

        Raises:
            ConfigurationError: there are no credentials, or certificates cannot be read.
        """
        identity = await self._credentials.current()
        self._check(identity)
        if self._tls is not None:
            await self._tls.context(identity.certificate)
        self._requests = open_pool(limit=REQUEST_CONNECTIONS, proxy=self.endpoint.proxy)
        self._streams = open_pool(limit=0, proxy=self.endpoint.proxy)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            await self._requests.close()
            await self._streams.close()

    def acting_as(
        self, credentials: Credentials | None = None, *, impersonation: Sequence[tuple[str, str]] = ()
    ) -> Transport:
        """The same open pools for somebody else: by their credentials, or by headers of impersonation beside ours.

        Beside their credentials no client certificate of ours is shown, which would count instead of them.
        """
        other = copy(self)
        if credentials is not None:
            other._credentials, other._tls = credentials, self._tls_of_others  # noqa: SLF001 - of this class
        other._impersonation = tuple(impersonation)  # noqa: SLF001 - of this class
        return other

    async def fetch(self, request: Request) -> bytes:
        """Send a request and return the body of a 2xx answer.

        Raises:
            ApiError: any other answer.
            TransportError: no answer.
        """

        async def attempt() -> bytes:
            response = await self._open(request)
            try:
                with self._transport_errors(request):
                    return await response.read()
            finally:
                response.release()

        return await self._retrying(request, attempt)

    @asynccontextmanager
    async def stream(
        self, request: Request, *, idle_timeout: float | None = None, pace: float = 0
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Send a request and read the body of a 2xx answer in chunks as they arrive.

        `TransportError` is raised after `idle_timeout` seconds without a byte. With a `pace` there are so many seconds
        between two reads, and what arrives meanwhile waits with the kernel.
        """
        response = await self._retrying(request, partial(self._open, request, _timeout(idle_timeout)))
        try:
            async with aclosing(self._chunks(request, response, pace)) as chunks:
                yield chunks
        finally:
            # Closes the connection, unless the body was read to its end.
            response.release()

    @asynccontextmanager
    async def web_socket(
        self, request: Request, protocols: Sequence[str]
    ) -> AsyncIterator[aiohttp.ClientWebSocketResponse[Any]]:
        """Open a WebSocket of one of these subprotocols, once: what it starts may not be repeated.

        Messages are read at the pace of the one who reads. Leaving the context closes the connection.
        """
        began = self.clock.monotonic()
        try:
            socket = await self._upgraded(request, protocols)
        finally:
            self._metrics.took(request.method, self.clock.monotonic() - began)
        try:
            yield socket
        finally:
            with anyio.CancelScope(shield=True):
                await socket.close()

    async def _upgraded(self, request: Request, protocols: Sequence[str]) -> aiohttp.ClientWebSocketResponse[Any]:
        identity = await self._credentials.current()
        try:
            try:
                return await self._upgrade(request, protocols, identity)
            except UpgradeRefusedError as refusal:
                if refusal.status != HTTPStatus.UNAUTHORIZED or (renewed := await self._renewed(identity)) is None:
                    raise
            return await self._upgrade(request, protocols, renewed)
        except UpgradeRefusedError as refusal:
            raise self._refused(request, refusal.status, refusal.headers, refusal.body) from None

    async def _upgrade(
        self, request: Request, protocols: Sequence[str], identity: Identity
    ) -> aiohttp.ClientWebSocketResponse[Any]:
        self._check(identity)
        await self._take_turn(request)
        context = await self._tls.context(identity.certificate) if self._tls is not None else None
        try:
            with self._transport_errors(request):
                socket = await self._streams.ws_connect(
                    yarl.URL(self._url + request.target, encoded=True),
                    method=request.method,
                    protocols=protocols,
                    headers=self._headers_of(request, identity),
                    timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_TIMEOUT),
                    ssl=True if context is None else context,
                    server_hostname=self.endpoint.server_hostname,
                )
        except UpgradeRefusedError as refusal:
            self._metrics.answered(request.method, refusal.status)
            raise
        except TransportError:
            self._metrics.answered(request.method, None)
            raise
        self._metrics.answered(request.method, HTTPStatus.SWITCHING_PROTOCOLS)
        return socket

    async def _retrying(self, request: Request, attempt: Callable[[], Awaitable[_T]]) -> _T:
        began = self.clock.monotonic()
        failures = 0
        try:
            while True:
                try:
                    return await attempt()
                except (TransportError, ApiError) as error:
                    pause = pause_before_retry(request.method, error, failures)
                    if pause is None:
                        raise
                    write = log.info if pause > LONG_WAIT else log.debug
                    write("retrying request", method=request.method, path=request.path, error=str(error), pause=pause)
                failures += 1
                await self.clock.sleep(pause)
        finally:
            self._metrics.took(request.method, self.clock.monotonic() - began)

    async def _open(self, request: Request, stream: aiohttp.ClientTimeout | None = None) -> aiohttp.ClientResponse:
        """A 2xx answer, which the caller must release; a 401 leads to one more attempt with renewed credentials."""
        identity = await self._credentials.current()
        response = await self._send(request, stream, identity)
        if response.status == 401 and (renewed := await self._renewed(identity)) is not None:
            response.release()
            response = await self._send(request, stream, renewed)
        for header in response.headers.getall("Warning", ()):
            for warning in _WARNING.findall(header):
                self._warn(request.path, re.sub(r"\\(.)", r"\1", warning))
        if response.status < 300:
            return response
        headers = response.headers
        try:
            with self._transport_errors(request):
                body = await response.read()
        finally:
            response.release()
        raise self._refused(request, response.status, headers, body)

    def _refused(self, request: Request, status: int, headers: Mapping[str, str], body: bytes) -> ApiError:
        """The error for an answer that is not 2xx."""
        error = answer_error(status, headers, body, self._name(request))
        return self._unauthorized(error) if isinstance(error, UnauthorizedError) else error

    def _check(self, identity: Identity) -> None:
        if identity.authorization and not identity.authorization.isprintable():
            raise ConfigurationError(
                "the credentials hold line breaks or other characters that no HTTP header may have: "
                f"{self._credentials.description}"
            )

    async def _renewed(self, rejected: Identity) -> Identity | None:
        """What to send instead of a rejected identity; the same one if a new client certificate goes with it."""
        renewed = await self._credentials.renew(rejected)
        if renewed is None and self._tls is not None and await self._tls.check_now():
            return rejected
        return renewed

    def _unauthorized(self, error: UnauthorizedError) -> UnauthorizedError:
        expiry = self._tls.certificate_expiry if self._tls is not None else None
        expired = expiry is not None and expiry <= self.clock.now()
        text = f"the API server does not accept the credentials: {self._credentials.description}" + (
            f" (the client certificate expired at {expiry})" if expired else ""
        )
        return UnauthorizedError(error.code, text, reason=error.status_reason, status=error.status)

    async def _chunks(
        self, request: Request, response: aiohttp.ClientResponse, pace: float
    ) -> AsyncGenerator[bytes, None]:
        with self._transport_errors(request):
            if not pace:
                async for chunk in response.content.iter_any():
                    yield chunk
                return
            paced = paced_chunks(response, pace, clock=self.clock, scheduler=self._scheduler)
            async with aclosing(paced) as chunks:
                async for chunk in chunks:
                    yield chunk
                    # Not kept during the pause.
                    del chunk

    async def _send(
        self, request: Request, stream: aiohttp.ClientTimeout | None, identity: Identity
    ) -> aiohttp.ClientResponse:
        self._check(identity)
        await self._take_turn(request)
        context = await self._tls.context(identity.certificate) if self._tls is not None else None
        url = yarl.URL(self._url + request.target, encoded=True)
        pool = self._requests if stream is None else self._streams
        try:
            with self._transport_errors(request):
                response = await pool.request(
                    request.method,
                    url,
                    data=None if request.body is None else aiohttp.BytesPayload(request.body),
                    headers=self._headers_of(request, identity),
                    timeout=stream or self._request_timeout,
                    allow_redirects=False,
                    ssl=True if context is None else context,
                    server_hostname=self.endpoint.server_hostname,
                )
        except TransportError:
            self._metrics.answered(request.method, None)
            raise
        if stream is not None:
            end_with_connection(response)
        self._metrics.answered(request.method, response.status)
        return response

    def _headers_of(self, request: Request, identity: Identity) -> dict[str, str] | CIMultiDict[str]:
        headers: dict[str, str] | CIMultiDict[str]
        headers = {**(self._headers if request.body is None else self._body_headers), **request.headers}
        if self._impersonation:
            headers = CIMultiDict([*headers.items(), *self._impersonation])
        if identity.authorization:
            headers["Authorization"] = identity.authorization
        return headers

    async def _take_turn(self, request: Request) -> None:
        if self._rate_limiter is None:
            return
        seconds = await self._rate_limiter.wait()
        if seconds > LONG_WAIT:
            log.info("waited for the client's rate limit", method=request.method, path=request.path, seconds=seconds)

    @contextmanager
    def _transport_errors(self, request: Request) -> Iterator[None]:
        try:
            yield
        except (aiohttp.ClientError, OSError) as error:
            raise transport_error(error, self._name(request)) from error

    def _name(self, request: Request) -> str:
        return f"{request.method} {self._base}{request.path}"


def _timeout(read_timeout: float | None) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(sock_connect=CONNECT_TIMEOUT, sock_read=read_timeout)
