"""Connections: what the peers of an HTTP server may cost, in time and memory.

aiohttp reads requests and writes answers, and bounds lines, headers, and what nobody has read yet of a body. It does
not know how long a request may take to arrive, how large its head may be in all, nor how many peers there are. So a
`Connection` is aiohttp's protocol that follows what its peer is at:

    handshake -> head -> request -> idle -> head ...

Each phase has its deadline. What is over is dropped, whatever the peer or a handler is doing, and counted under one of
`trainer.kube.metrics.servers.DROP_REASONS`.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from ssl import SSLContext
from typing import Any, cast

import anyio
from aiohttp import web
from anyio.abc import TaskGroup

from trainer.kube.clock import Clock
from trainer.kube.metrics.servers import HttpServerMetrics
from trainer.kube.serving.sparse_log import SparseLog

HANDSHAKE_TIMEOUT = HEAD_TIMEOUT = 10.0
"""Seconds for a TLS handshake; from the opening of the connection, or the first byte of a later request, until its head
is complete. It is a third of what controller-runtime allows; nobody who means it takes one."""

REQUEST_TIMEOUT = 60.0
"""Seconds from the head until the answer is made: twice what any request to this process may take."""

MAX_HEAD_BYTES = 32 * 1024
"""Size of a request line with all its headers; also what may be sent beyond a request before it is answered."""

SERVER = "trainer.kube"
"""Header `Server` of all answers, which aiohttp would give its version and that of Python."""

LINGER = 2.0
"""Seconds for which the rest of a body that nobody wants is read, so that the client sees the answer."""

_END_OF_HEAD = b"\r\n\r\n"
_OPTIONS: Any = {
    "access_log": None,
    "keepalive_timeout": 86_400.0,  # the deadline of a phase is sooner
    "lingering_time": LINGER,
    "max_headers": 64,
    "auto_decompress": False,  # a compressed body could grow without bounds
}
_CLOSE_TIMEOUT = 2.0
"""Seconds that a peer has to agree to the end of a TLS connection."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections a server keeps, and for how long."""

    max_connections: int = 100
    """Open connections, TLS handshakes included. When there are more, the one is dropped that has been without a
    complete request for longest, or the new one while all others are being answered. Default: 100, plenty for probes
    and scrapers."""
    idle_timeout: float = 90.0
    """Seconds that a connection may be unused, or may take to read an answer. Default: 90, as in controller-runtime."""


class Phase(StrEnum):
    """What the peer of a connection is at; the value is the reason to drop it when that takes too long."""

    HANDSHAKE = "handshake"
    HEAD = "slow_head"
    """A request has begun, or the first one is waited for."""
    REQUEST = "slow_request"
    """The head is complete, and the answer is not, or the rest of a body that nobody wanted is to come."""
    IDLE = "idle"


class Connections:
    """Those of one server that are open, handshakes included."""

    def __init__(self, server: str, limits: ConnectionLimits, clock: Clock, metrics: HttpServerMetrics) -> None:
        self.limits = limits
        self.clock = clock
        self.metrics = metrics
        self.problems = SparseLog("trouble with connections", clock=clock, server=server)
        self._open: dict[Connection, None] = {}
        self._emptied = anyio.Event()
        self._closed = False
        metrics.connections.set_function(self._open.__len__)

    def add(self, connection: Connection) -> bool:
        """Keep one more, in place of another where there are too many; False where no more are taken."""
        if self._closed:
            return False
        crowded = len(self._open) >= self.limits.max_connections
        others = [other for other in self._open if other.can_give_way] if crowded else []
        self._open[connection] = None
        if crowded:
            min(others, key=lambda other: other.since, default=connection).drop("crowded")
        return connection in self._open

    def remove(self, connection: Connection, reason: str | None = None) -> bool:
        """Forget one that has ended, or is dropped for a reason; whether it was there."""
        if connection not in self._open:
            return False
        del self._open[connection]
        if reason is not None:
            self.metrics.dropped[reason].inc()
        if not self._open:
            self._emptied.set()
        return True

    async def keep_deadlines(self) -> None:
        """Drop those whose deadline has passed, until cancelled."""
        soonest = min(HEAD_TIMEOUT, 2 * LINGER, self.limits.idle_timeout)
        while True:
            now = self.clock.monotonic()
            for connection in tuple(self._open):
                if connection.deadline <= now:
                    connection.drop()
            # A deadline that is set from now on is not sooner than that.
            await self.clock.sleep(min([soonest, *(connection.deadline - now for connection in self._open)]))

    def close(self) -> None:
        """End all, and those that the listeners have accepted meanwhile."""
        self._closed = True
        for connection in tuple(self._open):
            connection.abort()

    async def wait_until_all_have_ended(self) -> None:
        """Wait until the last one has ended."""
        while self._open:
            self._emptied = anyio.Event()
            await self._emptied.wait()


class Connection(web.RequestHandler):
    """One connection: aiohttp's protocol with limits.

    Args:
        http: calls the handler of requests.
        all_: where it is kept while it is open.
        tasks: run the handshake.
        tls: for HTTPS; None: plain HTTP.
    """

    def __init__(self, http: web.Server, all_: Connections, tasks: TaskGroup, tls: SSLContext | None) -> None:
        super().__init__(http, loop=asyncio.get_running_loop(), **_OPTIONS)
        self.since = 0.0
        """When its phase began, by the clock."""
        self.deadline = 0.0
        """When its phase must have ended."""
        self._all = all_
        self._tasks = tasks
        self._tls = tls
        self._socket: asyncio.Transport | None = None
        self._request: web.BaseRequest | None = None
        """The last request of which the handler has been called; None when a later one is complete."""
        self._tail = b""
        self._unasked_bytes = 0
        """Of a head, or of what follows a request; what a handler reads is not counted."""
        self._enter(Phase.HANDSHAKE, HANDSHAKE_TIMEOUT)

    @property
    def can_give_way(self) -> bool:
        """Whether nobody works on a request that has arrived, so that others may have its place."""
        return self._phase is not Phase.REQUEST or (self._request is not None and not self._request.content.is_eof())

    def drop(self, reason: str | None = None) -> None:
        """End it at once; without a reason because its phase has taken too long."""
        if self._all.remove(self, reason or self._phase.value):
            self.abort()

    def abort(self) -> None:
        """Close the socket without waiting for the peer."""
        if self._socket is not None:
            self._socket.abort()

    def begin(self, request: web.BaseRequest) -> None:
        """A handler is called."""
        self._enter(Phase.REQUEST, REQUEST_TIMEOUT)
        self._request = request

    def unlimit(self) -> None:
        """The answer under way has no deadline."""
        self.deadline = math.inf

    def end(self) -> None:
        """The handler has made its answer, or given up."""
        if self._request is None or self._request.content.is_eof():
            self._enter(Phase.IDLE, self._all.limits.idle_timeout)
        else:
            self._enter(Phase.REQUEST, 2 * LINGER)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is open."""
        self._socket = cast("asyncio.Transport", transport)
        if not self._all.add(self):
            self.abort()
        elif self._tls is not None:
            self._socket.pause_reading()
            self._tasks.start_soon(self._shake_hands, self._socket, self._tls)
        else:
            self._enter(Phase.HEAD, HEAD_TIMEOUT)
            super().connection_made(transport)

    async def _shake_hands(self, socket: asyncio.Transport, tls: SSLContext) -> None:
        if socket.is_closing():
            return
        try:
            transport = await asyncio.get_running_loop().start_tls(
                socket, self, tls, server_side=True, ssl_shutdown_timeout=_CLOSE_TIMEOUT
            )
        except OSError:  # no TLS, or the peer does not like ours
            self.drop()
            return
        if transport is None or socket.is_closing():
            self._all.remove(self)
            return
        if self._phase is Phase.HANDSHAKE:  # else a request came with its last message
            self._enter(Phase.HEAD, HEAD_TIMEOUT)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Nothing is left of it."""
        self._all.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """See whether a head is complete, and bound what no handler reads; the reader of a body sets the pace."""
        if self._phase is Phase.IDLE or self._phase is Phase.HANDSHAKE:
            self._enter(Phase.HEAD, HEAD_TIMEOUT)
        if self._phase is Phase.HEAD:
            end = (self._tail + data).find(_END_OF_HEAD)
            self._unasked_bytes += len(data) if end < 0 else end
            if end >= 0 and self._unasked_bytes <= MAX_HEAD_BYTES:
                self._enter(Phase.REQUEST, REQUEST_TIMEOUT)
                self._request = None
        elif self._request is not None and self._request.content.is_eof():
            self._unasked_bytes += len(data)
        self._tail = (self._tail + data[-3:])[-3:]
        if self._unasked_bytes > MAX_HEAD_BYTES:
            self.drop("large_head" if self._phase is Phase.HEAD else "pipelining")
        else:
            super().data_received(data)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - the words of the parser
    ) -> web.StreamResponse:
        """The answer to a request that could not be read."""
        self._all.metrics.dropped["malformed"].inc()
        self._all.problems.warning(problem=f"malformed request from {request.remote}: {exc}")
        if request.writer.output_size > 0:
            raise ConnectionError("an answer has been begun")
        text = "the request is malformed" if status == HTTPStatus.BAD_REQUEST else HTTPStatus(status).phrase
        response = web.Response(status=status, text=f"{text}\n", headers={"Server": SERVER})
        response.force_close()
        return response

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Log what aiohttp did not expect of the peer, who decides how often that happens."""
        self._all.problems.warning(problem=f"{args[0]}: {kw.get('exc_info')}")

    def _enter(self, phase: Phase, timeout: float) -> None:
        self._phase = phase
        self._unasked_bytes = 0
        self.since = self._all.clock.monotonic()
        self.deadline = self.since + timeout
