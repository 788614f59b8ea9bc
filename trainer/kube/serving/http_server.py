"""HTTP server: listens on one address, with limits that keep it answering whoever else connects.

Sockets are accepted here and not by asyncio, which gives a connection to nobody before its TLS handshake is done: who
never finishes one would take memory and file descriptors that nobody counts. Each connection has a task of its own,
that of `run`'s task group, which ends when the connection does.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import anyio
import anyio.lowlevel
from aiohttp import web
from anyio.abc import SocketAttribute, TaskGroup

from trainer.kube.clock import Clock
from trainer.kube.errors import ConfigurationError
from trainer.kube.logger import get_logger
from trainer.kube.metrics import Metrics
from trainer.kube.metrics.servers import HttpServerSeries
from trainer.kube.serving.connection import HEAD_TIMEOUT, LINGER, Connection, ConnectionLimits
from trainer.kube.serving.http_protocol import HttpProtocols, name_server
from trainer.kube.serving.sparse_log import PeerLog

log = get_logger(__name__)

Answer: TypeAlias = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
"""Answers a request; what it raises is logged, and answered with 500 and no details.

A stream that it has prepared may last as long as the peer reads it, see `HttpServer.unlimit`."""

_FLUSH_TIMEOUT = 1.0
"""Seconds that written answers have to leave when the server stops."""
_BACKLOG = 128
"""Connections that wait with the kernel while there is no room."""
_AT_ONCE = 0.01
"""Seconds that requests have to end when the server is cancelled; aiohttp takes 0 for no limit."""
_BATCH = 100
"""Connections accepted in one turn of the event loop."""
_ACCEPT_RETRY = 1.0
"""Seconds until it is tried again to accept, when the system has no more file descriptors or memory."""
_CLOSED = -1
_EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_CLOSE_TIMEOUT = 2.0
"""Seconds that a peer has to agree to the end of a TLS connection."""
_NO_LIMIT = 86_400.0
"""Seconds, for limits of asyncio and aiohttp that connections keep by their own clock."""
_MAX_HEADERS = 64


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
        self._limits = options.limits
        self._clock = clock
        self._metrics = metrics.series(HttpServerSeries).for_server(name)
        self._connections: dict[object, Connection] = {}
        self._metrics.connections.set_function(self._connections.__len__)
        self._listeners: list[socket.socket] = []
        self._active = 0
        self._changed: anyio.Event | None = None
        self._peers = PeerLog(name, clock=clock, malformed=self._metrics.dropped["malformed"].inc)

    async def run(self, until: Callable[[], Awaitable[object]], *, grace: float = 0.0) -> None:
        """Serve until `until` returns, and answer then what has been asked; or until cancelled.

        Requests under way have `grace` seconds to be answered when it is cancelled.

        Raises:
            ConfigurationError: the address is in use or not ours; says so, with the remedy.
        """
        http = HttpProtocols(
            self._serve,
            access_log=None,
            keepalive_timeout=_NO_LIMIT,
            lingering_time=LINGER,
            max_headers=_MAX_HEADERS,
            # A compressed body could grow without bounds.
            auto_decompress=False,
            logger=self._peers,
        )
        self._listeners = await self._listen()
        try:
            async with anyio.create_task_group() as tasks:
                try:
                    tasks.start_soon(self._keep_deadlines)
                    for listener in self._listeners:
                        tasks.start_soon(self._accept, listener, http, tasks)
                    self.address = self._listeners[0].getsockname()[:2]
                    log.info("serving", server=self.name, address=f"{self.address[0]}:{self.address[1]}")
                    self.started.set()
                    await until()
                    self._close_listeners()
                    # Connections that have just been accepted begin with their first request.
                    await anyio.lowlevel.checkpoint()
                    await self._finish(http)
                finally:
                    self._close_listeners()
                    with anyio.CancelScope(shield=True):
                        http.pre_shutdown()
                        await http.shutdown(grace or _AT_ONCE)
                    for connection in self._connections.values():
                        connection.scope.cancel()
                    tasks.cancel_scope.cancel()
        finally:
            self._close_listeners()

    def unlimit(self, request: web.BaseRequest) -> None:
        """Let the answer to this request take as long as it does, such as a stream of events."""
        connection = self._connections.get(request.protocol)
        if connection is not None:
            connection.unlimit()

    def drop(self, request: web.BaseRequest) -> None:
        """End the connection of this request, with what of its answer has not left yet, so that others have room."""
        connection = self._connections.get(request.protocol)
        if connection is not None:
            connection.drop("crowded")

    async def _listen(self) -> list[socket.socket]:
        host, port = self._options.host, self._options.port
        try:
            return await _sockets(host, port)
        except OSError as error:
            where = f"{host or 'all addresses'}, port {port}"
            reason = os.strerror(error.errno) if error.errno is not None and error.errno > 0 else str(error)
            raise ConfigurationError(
                f"{self.name} cannot be served on {where}: {reason}; choose another address"
            ) from error

    def _close_listeners(self) -> None:
        for listener in self._listeners:
            anyio.notify_closing(listener)
            listener.close()
        self._listeners.clear()

    async def _finish(self, http: web.Server) -> None:
        http.pre_shutdown()
        while self._active:
            await self._change()
        await http.shutdown(_FLUSH_TIMEOUT)
        with anyio.move_on_after(_FLUSH_TIMEOUT):
            while self._connections:
                await self._change()

    async def _accept(self, listener: socket.socket, http: web.Server, tasks: TaskGroup) -> None:
        listener.setblocking(False)
        while listener.fileno() != _CLOSED:
            try:
                await anyio.wait_readable(listener)
            except anyio.ClosedResourceError:
                return
            try:
                # No pause between accepting and starting: nobody would close what was cancelled there.
                for _ in range(_BATCH):
                    if not self._has_room():
                        break
                    connection, _ = listener.accept()
                    self._start(connection, http, tasks)
            except OSError as error:
                if error.errno in _EXHAUSTED:
                    self._peers.log_problem(f"cannot accept connections: {error.strerror}")
                    self._make_room()
                    await self._clock.sleep(_ACCEPT_RETRY)
            while not self._has_room():
                await self._change()

    def _has_room(self) -> bool:
        return len(self._connections) < self._limits.max_connections or any(
            connection.can_give_way for connection in self._connections.values()
        )

    def _make_room(self) -> None:
        """Drop the connection that has been without a complete request for longest."""
        candidates = [pair for pair in self._connections.items() if pair[1].can_give_way]
        if candidates:
            key, connection = min(candidates, key=lambda pair: pair[1].since)
            del self._connections[key]
            connection.drop("crowded")

    def _start(self, accepted: socket.socket, http: web.Server, tasks: TaskGroup) -> None:
        if len(self._connections) >= self._limits.max_connections:
            self._make_room()
        protocol = http()
        connection = Connection(protocol, clock=self._clock, limits=self._limits, changed=self._note_change)
        self._connections[protocol] = connection
        self._note_change()
        tasks.start_soon(self._hold, accepted, protocol, connection)

    async def _hold(self, accepted: socket.socket, protocol: web.RequestHandler, connection: Connection) -> None:
        """A connection from beginning to end."""
        tls: dict[str, float] = {}
        if self._options.tls is not None:
            tls = {"ssl_handshake_timeout": _NO_LIMIT, "ssl_shutdown_timeout": _CLOSE_TIMEOUT}
        try:
            with connection.scope:
                loop = asyncio.get_running_loop()
                await loop.connect_accepted_socket(lambda: connection, accepted, ssl=self._options.tls, **tls)
                await connection.lost.wait()
        except OSError:  # no TLS, or the peer does not like ours
            connection.reason = connection.reason or "handshake"
        finally:
            connection.abort()
            if self._connections.get(protocol) is connection:
                del self._connections[protocol]
            if connection.reason is not None:
                self._metrics.dropped[connection.reason].inc()
            self._note_change()

    async def _keep_deadlines(self) -> None:
        soonest = min(HEAD_TIMEOUT, self._limits.idle_timeout)
        while True:
            while not self._connections:
                await self._change()
            now = self._clock.monotonic()
            for connection in tuple(self._connections.values()):
                if connection.deadline <= now and connection.reason is None:
                    connection.drop()
            # A deadline that is set from now on is not sooner than that.
            pending = [each.deadline - now for each in self._connections.values() if each.reason is None]
            await self._clock.sleep(min(soonest, 2 * LINGER, *pending))

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = self._connections.get(request.protocol)
        self._active += 1
        try:
            if connection is not None:
                connection.begin(request)
            response: web.StreamResponse = await self._answer(request)
        except Exception:
            log.exception("could not answer request", server=self.name)
            response = web.Response(status=500, text="the log of this process says why\n")
        finally:
            self._active -= 1
            if connection is not None:
                connection.end()
            self._note_change()
        self._metrics.answered(response.status)
        name_server(response)
        return response

    def _note_change(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None

    async def _change(self) -> None:
        self._changed = self._changed or anyio.Event()
        await self._changed.wait()


async def _sockets(host: str, port: int) -> list[socket.socket]:
    """Sockets that listen on all addresses of a host, or of this machine if it is ""."""
    try:
        listener = await anyio.create_tcp_listener(local_host=host or None, local_port=port, backlog=_BACKLOG)
    except OSError as error:
        if host or error.errno == errno.EADDRINUSE:
            raise
        # IPv6 is switched off, which the resolver does not always know.
        listener = await anyio.create_tcp_listener(local_port=port, family=socket.AF_INET, backlog=_BACKLOG)
    return [each.extra(SocketAttribute.raw_socket) for each in listener.listeners]  # noqa: S610 - no Django
