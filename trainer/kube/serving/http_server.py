"""HTTP server: aiohttp on one address, with limits that keep it answering whoever else connects."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from asyncio import Server, get_running_loop
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias, cast

import anyio
import anyio.lowlevel
from aiohttp import web
from anyio.abc import SocketAttribute

from trainer.kube.clock import Clock
from trainer.kube.errors import ConfigurationError
from trainer.kube.logger import get_logger
from trainer.kube.metrics import Metrics
from trainer.kube.metrics.servers import HttpServerSeries
from trainer.kube.serving.connection import SERVER, Connection, ConnectionLimits, Connections

log = get_logger(__name__)

Answer: TypeAlias = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
"""Answers a request; what it raises is logged, and answered with 500 and no details.

A stream that it has prepared may last as long as the peer reads it, see `HttpServer.unlimit`."""

_FLUSH_TIMEOUT = 1.0
"""Seconds that written answers have to leave when the server stops."""
_AT_ONCE = 0.01
"""Seconds that requests have to end when the server is cancelled; aiohttp takes 0 for no limit."""


@dataclass(frozen=True, slots=True)
class HttpServerOptions:
    """Where an HTTP server listens, and its limits."""

    host: str
    """Address or name to listen on; "" is all addresses of IPv4 and IPv6."""
    port: int
    """0 takes a free one, see `HttpServer.address`."""
    limits: ConnectionLimits = field(default_factory=ConnectionLimits)
    """Limits of time and size. Default: those of its class."""
    tls: ssl.SSLContext | None = None
    """For HTTPS. Default: None, plain HTTP."""

    def __post_init__(self) -> None:
        """Refuse a port that there is not.

        Raises:
            ValueError: names it.
        """
        if not 0 <= self.port <= 65535:
            raise ValueError(f"port must be from 0 to 65535, got {self.port}")


class HttpServer:
    """Serves HTTP/1.1 while `run` does.

    The name, such as `webhooks`, is the label `server` of the metrics, and part of messages.
    """

    def __init__(
        self, name: str, answer: Answer, options: HttpServerOptions, *, clock: Clock, metrics: Metrics
    ) -> None:
        self.name = name
        self.address: tuple[str, int] = options.host, options.port
        """Where it listens; known when it has started."""
        self.started = anyio.Event()
        """It listens."""
        self._answer = answer
        self._options = options
        self._metrics = metrics.series(HttpServerSeries).for_server(name)
        self._connections = Connections(name, options.limits, clock, self._metrics)

    async def run(self, until: Callable[[], Awaitable[object]], *, grace: float = 0.0) -> None:
        """Serve until `until` returns, and answer then what has been asked; or until cancelled.

        Requests under way have `grace` seconds to be answered when it is cancelled.

        Raises:
            ConfigurationError: the address is in use or not ours; says so, with the remedy.
        """
        # When the peer has gone, or was dropped, nobody waits for what a handler does.
        http = web.Server(self._serve, handler_cancellation=True)
        sockets = await self._listen()
        async with anyio.create_task_group() as tasks:

            def new() -> Connection:
                return Connection(http, self._connections, tasks, self._options.tls)

            create = get_running_loop().create_server
            listeners = [await create(new, sock=each, start_serving=False) for each in sockets]
            try:
                for listener in listeners:
                    await listener.start_serving()
                tasks.start_soon(self._connections.keep_deadlines)
                self.address = sockets[0].getsockname()[:2]
                log.info("serving", server=self.name, address=f"{self.address[0]}:{self.address[1]}")
                self.started.set()
                await until()
                await _finish(listeners, http, within=None)
                with anyio.move_on_after(_FLUSH_TIMEOUT):
                    await self._connections.wait_until_all_have_ended()
            finally:
                with anyio.CancelScope(shield=True):
                    await _finish(listeners, http, within=grace or _AT_ONCE)
                self._connections.close()
                tasks.cancel_scope.cancel()

    def unlimit(self, request: web.BaseRequest) -> None:
        """Let the answer to this request take as long as it does, such as a stream of events."""
        cast("Connection", request.protocol).unlimit()

    def drop(self, request: web.BaseRequest) -> None:
        """End the connection of this request, with what of its answer has not left yet, so that others have room."""
        cast("Connection", request.protocol).drop("crowded")

    async def _listen(self) -> list[socket.socket]:
        """Sockets on all addresses of the host, or of this machine if it is ""."""
        host, port = self._options.host, self._options.port
        try:
            return await _sockets(host, port)
        except OSError as error:
            where = f"{host or 'all addresses'}, port {port}"
            reason = os.strerror(error.errno) if error.errno is not None and error.errno > 0 else str(error)
            raise ConfigurationError(
                f"{self.name} cannot be served on {where}: {reason}; choose another address"
            ) from error

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = cast("Connection", request.protocol)
        connection.begin(request)
        try:
            response: web.StreamResponse = await self._answer(request)
        except Exception:
            log.exception("could not answer request", server=self.name)
            response = web.Response(status=500, text="the log of this process says why\n")
        finally:
            connection.end()
        self._metrics.answered(response.status)
        response.headers.setdefault("Server", SERVER)
        return response


async def _sockets(host: str, port: int) -> list[socket.socket]:
    try:
        listener = await anyio.create_tcp_listener(local_host=host or None, local_port=port)
    except OSError as error:
        if host or error.errno == errno.EADDRINUSE:
            raise
        # IPv6 is switched off, which the resolver does not always know.
        listener = await anyio.create_tcp_listener(local_port=port, family=socket.AF_INET)
    return [each.extra(SocketAttribute.raw_socket) for each in listener.listeners]  # noqa: S610 - no Django


async def _finish(listeners: list[Server], http: web.Server, *, within: float | None) -> None:
    """Take no more connections and requests, and answer those under way."""
    for listener in listeners:
        listener.close()
    # Connections that have just been accepted begin with their first request.
    await anyio.lowlevel.checkpoint()
    http.pre_shutdown()
    await http.shutdown(within)
