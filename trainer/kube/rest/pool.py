"""Connection pools of aiohttp, without what it adds to a request by itself."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import aiohttp

from trainer.kube.rest.failures import BrokenConnectionError

IDLE = 45.0
"""Seconds that an unused connection is kept: longer than pauses between attempts to find an optional kind (36 s), of
which each would begin with a TLS handshake, and shorter than the 90 s after which API servers close it."""

_KEEPALIVE = ((socket.TCP_KEEPIDLE, 30), (socket.TCP_KEEPINTVL, 15), (socket.TCP_KEEPCNT, 4))
"""HTTP/1.1 has no ping: this finds a dead peer of an idle watch within 90 s."""


def open_pool(*, limit: int, proxy: str | None) -> aiohttp.ClientSession:
    """Connections, at most so many unless it is 0, that take each request once, by its TLS context."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=limit, keepalive_timeout=IDLE, socket_factory=_keepalive_socket),
        cookie_jar=aiohttp.DummyCookieJar(),
        proxy=proxy,
        middlewares=(_send_once, _keep_refusals),
    )


def _keepalive_socket(address: tuple[Any, ...]) -> socket.socket:
    """A socket for this result of `getaddrinfo` that finds out when its peer is dead."""
    family, kind, protocol, *_ = address
    sock = socket.socket(family, kind, protocol)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE:
        sock.setsockopt(socket.IPPROTO_TCP, option, value)
    return sock


async def _send_once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Keeps aiohttp from repeating a request by itself; see `BrokenConnectionError`."""
    try:
        return await send(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise BrokenConnectionError(str(error)) from error


class UpgradeRefusedError(Exception):
    """The answer to a request for a WebSocket is another one, of which aiohttp would drop the body."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(status)
        self.status = status
        self.headers = headers
        self.body = body


async def _keep_refusals(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    response = await send(request)
    if "Upgrade" in request.headers and response.status != HTTPStatus.SWITCHING_PROTOCOLS:
        if response.ok:
            response.close()
            raise aiohttp.ClientError("the answer is no WebSocket: a proxy in between has to let it through")
        raise UpgradeRefusedError(response.status, response.headers, await response.read())
    return response


def end_with_connection(response: aiohttp.ClientResponse) -> None:
    """Have the reader of a body fail when its connection is gone.

    aiohttp 3.14 closes a connection on which a malformed chunk arrives, and leaves the reader waiting forever.
    """
    protocol = response.connection.protocol if response.connection is not None else None
    closed = protocol.closed if protocol is not None else None
    if closed is None:
        return
    body = response.content

    def fail(_: asyncio.Future[None]) -> None:
        if not body.is_eof() and body.exception() is None:
            body.set_exception(aiohttp.ClientError("the server sent what is not HTTP/1.1 as it should be"))

    def forget() -> None:
        closed.remove_done_callback(fail)

    closed.remove_done_callback(_retrieve)
    closed.add_done_callback(_retrieve)
    closed.add_done_callback(fail)
    # The connection may serve many more requests, whose bodies it would keep.
    body.on_eof(forget)


def _retrieve(closed: asyncio.Future[None]) -> None:
    """Take the exception with which a connection was lost; asyncio logs one that nobody takes."""
    closed.exception()
