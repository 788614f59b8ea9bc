"""HTTP to one API server: connection pools, credentials, TLS, retries, the client's rate limit and its metrics."""

from __future__ import annotations

from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Self, TypeAlias, TypeVar
from urllib.parse import urlsplit

import aiohttp
import anyio
import structlog
import yarl

from trainer.kube.clock import Clock, SystemClock
from trainer.kube.errors import ApiError, ConfigurationError, TransportError, UnauthorizedError
from trainer.kube.metrics import Metrics
from trainer.kube.metrics.requests import RequestMetrics
from trainer.kube.rest.failures import answer_error, transport_error
from trainer.kube.rest.fair_scheduler import FairScheduler
from trainer.kube.rest.paced_answer import PacedAnswer, open_paced
from trainer.kube.rest.pool import open_pool
from trainer.kube.rest.retries import pause_before_retry
from trainer.kube.rest.server_warnings import log_warning, server_warnings
from trainer.kube.rest.tls import ClientTls, ReloadingTls

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
    from types import TracebackType

    from trainer.kube.rest.credentials import Credentials, Identity
    from trainer.kube.rest.rate_limiter import RateLimiter
    from trainer.kube.rest.server_warnings import WarningHandler

log = structlog.get_logger(__name__)

_T = TypeVar("_T")

Answer: TypeAlias = aiohttp.ClientResponse | PacedAnswer
"""An answer whose head has come; whoever gets it must release it."""

Send: TypeAlias = "Callable[[Request, yarl.URL, dict[str, str], ssl.SSLContext | None], Awaitable[Answer]]"
"""One of the ways to send a request: on a connection of a pool, or on one of its own."""

CONNECT_TIMEOUT = 30.0
READ_TIMEOUT = 70.0
"""Seconds without a byte from the server; it ends requests by itself after 60 s."""

REQUEST_CONNECTIONS = 100
"""Requests that are under way at once; further ones wait. Streams have no limit."""

LONG_WAIT = 1.0
"""Seconds that are worth a line in the log: of the client's own rate limit, or of a pause before a retry."""

STREAMS_PER_ROUND = 4
"""Paced streams that are read in one round of the event loop; others wait for the next.

A write takes ten rounds or more, so what a round takes is what a write takes tenfold.
"""


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
    minutes; paced streams (`rest.paced_answer`) are not pooled. `rest.retries` says which requests are sent more than
    once. Each attempt passes the rate limit and is counted; a stream does so only when it is opened.
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
        detailed_metrics: bool = False,
        warn: WarningHandler = log_warning,
    ) -> None:
        self.endpoint = endpoint
        self._base = endpoint.server.rstrip("/")
        self._credentials = credentials
        self._user_agent = user_agent
        self._clock = clock or SystemClock()
        self._rate_limiter = rate_limiter
        self._metrics = RequestMetrics(metrics or Metrics(), urlsplit(self._base).netloc, detailed=detailed_metrics)
        self._warn = warn
        self._scheduler = FairScheduler(per_round=STREAMS_PER_ROUND)
        self._tls: ReloadingTls | None = None
        if endpoint.tls is not None:
            self._tls = ReloadingTls(endpoint.tls, clock=self._clock, metrics=self._metrics)

    async def __aenter__(self) -> Self:
        """Open the pools.

        Raises:
            ConfigurationError: there are no credentials, or certificates cannot be read.
        """
        identity = await self._credentials.current()
        self._check(identity)
        if self._tls is not None:
            await self._tls.context(identity.certificate)
        open_one = partial(
            open_pool,
            user_agent=self._user_agent,
            proxy=self.endpoint.proxy,
            clock=self._clock,
            resolved=self._metrics.resolved if self._metrics.is_detailed else None,
        )
        self._requests = open_one(limit=REQUEST_CONNECTIONS)
        self._streams = open_one(limit=0)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            await self._requests.close()
            await self._streams.close()

    async def fetch(self, request: Request) -> bytes:
        """Send a request and return the body of a 2xx answer.

        Raises:
            ApiError: any other answer.
            TransportError: no answer.
        """
        return await self.read(request, _whole)

    async def read(self, request: Request, consume: Callable[[AsyncIterator[bytes]], Awaitable[_T]]) -> _T:
        """Send a request and return what `consume` makes of the chunks of a 2xx answer.

        Args:
            request: the request.
            consume: is called anew when the connection breaks and the request is repeated.

        Raises:
            ApiError: any other answer.
            TransportError: no answer, or one that ends early.
        """
        timeout = aiohttp.ClientTimeout(sock_connect=CONNECT_TIMEOUT, sock_read=READ_TIMEOUT)
        size = 0

        async def counted(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
            nonlocal size
            size = 0
            async for chunk in chunks:
                size += len(chunk)
                yield chunk

        async def attempt() -> _T:
            response = await self._open(partial(self._send_pooled, self._requests, timeout), request)
            try:
                async with aclosing(self._chunks(request, response)) as chunks:
                    return await consume(counted(chunks))
            finally:
                response.release()

        consumed = await self._retrying(request, attempt)
        if verb := self._metrics.verb(request.method):
            verb.response_bytes.observe(size)
        return consumed

    @asynccontextmanager
    async def stream(
        self, request: Request, *, idle_timeout: float | None = None, pace: float = 0
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Send a request and read the body of a 2xx answer in chunks as they arrive.

        Args:
            request: the request.
            idle_timeout: seconds without a byte after which `TransportError` is raised; default None: wait forever.
            pace: seconds between two reads; what arrives meanwhile waits with the kernel. A paced stream also takes far
                less memory, unless a proxy leads to the server. Default 0: read what arrives at once.
        """
        send: Send
        if pace and self.endpoint.proxy is None:
            send = partial(self._send_alone, idle_timeout)
        else:
            timeout = aiohttp.ClientTimeout(sock_connect=CONNECT_TIMEOUT, sock_read=idle_timeout)
            send = partial(self._send_pooled, self._streams, timeout)
        response = await self._retrying(request, partial(self._open, send, request))
        try:
            async with aclosing(self._chunks(request, response, pace)) as chunks:
                yield chunks
        finally:
            # Closes the connection, unless the body was read to its end.
            response.release()

    async def _retrying(self, request: Request, attempt: Callable[[], Awaitable[_T]]) -> _T:
        began = self._clock.monotonic()
        failures = 0
        try:
            while True:
                try:
                    return await attempt()
                except (TransportError, ApiError) as error:
                    pause = pause_before_retry(request.method, error, failures)
                    if pause is None:
                        raise
                    self._metrics.retried(request.method, error.code if isinstance(error, ApiError) else None)
                    tell = log.info if pause > LONG_WAIT else log.debug
                    tell("retrying request", method=request.method, path=request.path, error=str(error), pause=pause)
                failures += 1
                await self._clock.sleep(pause)
        finally:
            self._metrics.took(request.method, self._clock.monotonic() - began)

    async def _open(self, send: Send, request: Request) -> Answer:
        """A 2xx answer, which the caller must release; a 401 leads to one more attempt with renewed credentials."""
        identity = await self._credentials.current()
        response = await self._send(send, request, identity)
        if response.status == 401 and (renewed := await self._renewed(identity)) is not None:
            response.release()
            response = await self._send(send, request, renewed)
        for warning in server_warnings(response.headers.getall("Warning", ())):
            self._warn(request.path, warning)
        if response.status < 300:
            return response
        headers = response.headers
        try:
            body = await self._read(request, response)
        finally:
            response.release()
        error = answer_error(response.status, headers, body, self._name(request))
        if isinstance(error, UnauthorizedError):
            raise self._unauthorized(error)
        raise error

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
        expired = expiry is not None and expiry <= self._clock.now()
        text = f"the API server does not accept the credentials: {self._credentials.description}" + (
            f" (the client certificate expired at {expiry})" if expired else ""
        )
        return UnauthorizedError(error.code, text, reason=error.status_reason, status=error.status)

    async def _read(self, request: Request, response: Answer) -> bytes:
        with self._transport_errors(request):
            return await response.read()

    async def _chunks(self, request: Request, response: Answer, pace: float = 0) -> AsyncGenerator[bytes, None]:
        with self._transport_errors(request):
            if isinstance(response, PacedAnswer):
                async with aclosing(response.chunks(pace)) as chunks:
                    async for chunk in chunks:
                        yield chunk
                        # Not kept during the pause.
                        del chunk
                return
            async for chunk in response.content.iter_any():
                yield chunk
                if pace:
                    await self._clock.sleep(pace)

    async def _send_pooled(  # noqa: PLR0917 - the first two are bound
        self,
        session: aiohttp.ClientSession,
        timeout: aiohttp.ClientTimeout,
        request: Request,
        url: yarl.URL,
        headers: dict[str, str],
        context: ssl.SSLContext | None,
    ) -> aiohttp.ClientResponse:
        return await session.request(
            request.method,
            url,
            data=request.body,
            headers=headers,
            timeout=timeout,
            allow_redirects=False,
            ssl=True if context is None else context,
            server_hostname=self.endpoint.server_hostname,
        )

    async def _send_alone(
        self,
        idle_timeout: float | None,
        request: Request,
        url: yarl.URL,
        headers: dict[str, str],
        context: ssl.SSLContext | None,
    ) -> PacedAnswer:
        return await open_paced(
            request.method,
            url,
            {"User-Agent": self._user_agent, "Accept": "application/json"} | headers,
            request.body,
            context=context,
            server_hostname=self.endpoint.server_hostname,
            clock=self._clock,
            scheduler=self._scheduler,
            connect_timeout=CONNECT_TIMEOUT,
            idle_timeout=idle_timeout,
        )

    async def _send(self, send: Send, request: Request, identity: Identity) -> Answer:
        self._check(identity)
        await self._take_turn(request)
        headers = {"Content-Type": "application/json"} if request.body is not None else {}
        headers |= request.headers
        if identity.authorization:
            headers["Authorization"] = identity.authorization
        if verb := self._metrics.verb(request.method):
            verb.request_bytes.observe(len(request.body or b""))
        context = await self._tls.context(identity.certificate) if self._tls is not None else None
        params = {name: _text(value) for name, value in request.params.items() if value not in {None, ""}}
        url = yarl.URL(self._base + request.path).update_query(params)
        try:
            with self._transport_errors(request):
                response = await send(request, url, headers, context)
        except TransportError:
            self._metrics.answered(request.method, None)
            raise
        self._metrics.answered(request.method, response.status)
        return response

    async def _take_turn(self, request: Request) -> None:
        if self._rate_limiter is None:
            return
        seconds = await self._rate_limiter.wait()
        if verb := self._metrics.verb(request.method):
            verb.limited_seconds.observe(seconds)
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


async def _whole(chunks: AsyncIterator[bytes]) -> bytes:
    return b"".join([chunk async for chunk in chunks])


def _text(value: str | int | bool | None) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
