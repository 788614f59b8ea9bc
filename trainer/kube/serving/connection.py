"""Connection: what one peer of an HTTP server may cost, in time and memory.

aiohttp parses and answers; it knows limits for a line, a header and the number of headers, and closes what is idle. It
does not know how long a request may take to arrive, nor how much may come after it before it is answered. So this
protocol stands between the transport and aiohttp's, passes everything on, and follows what the peer is at:

    handshake -> head -> request -> idle -> head ...
                             `-> remainder (of a body that nobody wanted), and the end

Each phase has its deadline. The server looks at the deadlines, and drops a connection by cancelling its scope, whatever
it is at; `reason` says why, one of `trainer.kube.metrics.servers.DROP_REASONS`.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import cast

import anyio
from aiohttp import web

from trainer.kube.clock import Clock

HANDSHAKE_TIMEOUT = HEAD_TIMEOUT = 10.0
"""Seconds for a TLS handshake; from the opening of the connection, or the first byte of a later request, until its head
is complete. It is a third of what controller-runtime allows; nobody who means it takes one."""

REQUEST_TIMEOUT = 60.0
"""Seconds from the head until the answer is made: twice what any request to this process may take."""

MAX_HEAD_BYTES = 32 * 1024
"""Size of a request line with all its headers; also what may be sent beyond a request before it is answered."""

LINGER = 2.0
"""Seconds for which the rest of a body that nobody wants is read, so that the client sees the answer."""

_END_OF_HEAD = b"\r\n\r\n"
_UNREAD_BYTES = 512 * 1024
"""What may arrive in the few turns of the event loop between the end of a head and the call of its handler, before
aiohttp stops reading a body that nobody takes; asyncio reads at most 256 KiB in a turn."""
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\n"
    b"Content-Length: 37\r\n\r\nthe head of the request is too large\n"
)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections a server keeps, and for how long."""

    max_connections: int = 100
    """Open connections, TLS handshakes included. When there are as many, the one is dropped that has been without a
    complete request for longest; while all of them are being answered, new ones wait with the kernel. Default: 100,
    plenty for probes and scrapers."""
    idle_timeout: float = 90.0
    """Seconds that a connection may be unused, or may take to read an answer. Default: 90, as in controller-runtime."""


class Phase(Enum):
    """What the peer of a connection is at."""

    HANDSHAKE = auto()
    HEAD = auto()
    """A request has begun, or the first one is waited for."""
    REQUEST = auto()
    """The head is complete, and the answer is not."""
    REMAINDER = auto()
    """It is answered, and has a body that was not read to its end."""
    IDLE = auto()


_OVERDUE = {
    Phase.HANDSHAKE: "handshake",
    Phase.HEAD: "slow_head",
    Phase.REQUEST: "slow_request",
    Phase.REMAINDER: "slow_request",
    Phase.IDLE: "idle",
}


class Connection(asyncio.Protocol):
    """One connection.

    `http` is aiohttp's side of it; `changed` is called when it can be dropped for another one from now on.
    """

    def __init__(
        self, http: asyncio.Protocol, *, clock: Clock, limits: ConnectionLimits, changed: Callable[[], None]
    ) -> None:
        self.scope = anyio.CancelScope(shield=True)
        """Cancelled to drop the connection, and by nothing else; the server runs it in this scope."""
        self.lost = anyio.Event()
        """Nothing is left of it."""
        self.reason: str | None = None
        """Why it was dropped; None if it was not."""
        self.since = 0.0
        """When its phase began, by the clock."""
        self.deadline = 0.0
        """When its phase must have ended."""
        self._http = http
        self._clock = clock
        self._limits = limits
        self._changed = changed
        self._transport: asyncio.Transport | None = None
        self._request: web.BaseRequest | None = None
        self._tail = b""
        self._head_bytes = self._unread_bytes = 0
        self._enter(Phase.HANDSHAKE, HANDSHAKE_TIMEOUT)

    @property
    def can_give_way(self) -> bool:
        """Whether nobody works on a request that has arrived, so that others may have its place."""
        return self._phase is not Phase.REQUEST or (self._request is not None and not self._request.content.is_eof())

    def drop(self, reason: str | None = None) -> None:
        """End it at once; without a reason because its phase has taken too long."""
        self.reason = self.reason or reason or _OVERDUE[self._phase]
        self.scope.cancel()

    def begin(self, request: web.BaseRequest) -> None:
        """A handler is called."""
        self._enter(Phase.REQUEST, REQUEST_TIMEOUT)
        self._request = request
        self._unread_bytes = 0

    def unlimit(self) -> None:
        """The answer under way has no deadline."""
        self.deadline = math.inf

    def end(self) -> None:
        """The handler has made its answer, or given up."""
        request, self._request = self._request, None
        if request is not None and not request.content.is_eof():
            self._enter(Phase.REMAINDER, 2 * LINGER)
        else:
            self._enter(Phase.IDLE, self._limits.idle_timeout)
        self._changed()

    def abort(self) -> None:
        """Close the socket without waiting for the peer."""
        if self._transport is not None and not self.lost.is_set():
            # A TLS transport of Python 3.11.2 that was closed twice has forgotten what to abort, and ends by itself.
            with contextlib.suppress(AttributeError):
                self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self._transport = cast("asyncio.Transport", transport)
        self._enter(Phase.HEAD, HEAD_TIMEOUT)
        self._http.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._http.connection_lost(exc)
        self.lost.set()

    def pause_writing(self) -> None:
        """See `asyncio.Protocol`."""
        self._http.pause_writing()

    def resume_writing(self) -> None:
        """See `asyncio.Protocol`."""
        self._http.resume_writing()

    def eof_received(self) -> bool | None:
        """See `asyncio.Protocol`."""
        return self._http.eof_received()

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        if self.reason is not None:
            return
        if self._phase is Phase.IDLE:
            self._enter(Phase.HEAD, HEAD_TIMEOUT)
        if self._phase is Phase.HEAD:
            self._follow_head(data)
        elif self._phase is Phase.REQUEST:
            self._count_unread(data)
        self._tail = (self._tail + data[-3:])[-3:]
        if self.reason is None:
            self._http.data_received(data)

    def _follow_head(self, data: bytes) -> None:
        """See whether the head is complete; of what comes with it, aiohttp takes care."""
        if not self._head_bytes:  # the parser skips empty lines before a request, which are no end of a head
            self._tail, data = b"", data.lstrip(b"\r\n")
        end = (self._tail + data).find(_END_OF_HEAD)
        self._head_bytes += len(data) if end < 0 else end
        if self._head_bytes > MAX_HEAD_BYTES:
            assert self._transport is not None
            self._transport.write(_TOO_LARGE)
            self.drop("large_head")
        elif end >= 0:
            self._enter(Phase.REQUEST, REQUEST_TIMEOUT)

    def _count_unread(self, data: bytes) -> None:
        """Bound what comes after a request before its answer: only a body is expected, whose reader sets the pace."""
        if self._request is not None and not self._request.content.is_eof():
            return
        self._unread_bytes += len(data)
        if self._unread_bytes > (_UNREAD_BYTES if self._request is None else MAX_HEAD_BYTES):
            self.drop("pipelining")

    def _enter(self, phase: Phase, timeout: float) -> None:
        self._phase = phase
        self._head_bytes = self._unread_bytes = 0
        self.since = self._clock.monotonic()
        self.deadline = self.since + timeout
