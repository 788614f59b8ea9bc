"""Connection pools of aiohttp, without what it adds to a request by itself."""

from __future__ import annotations

import aiohttp

from trainer.kube.rest.failures import BrokenConnectionError
from trainer.kube.rest.lean_connection import keepalive_socket

IDLE = 45.0
"""Seconds that an unused connection is kept: longer than pauses between attempts to find an optional kind (36 s), of
which each would begin with a TLS handshake, and shorter than the 90 s after which API servers close it."""


def open_pool(*, limit: int, proxy: str | None) -> aiohttp.ClientSession:
    """Connections, at most so many unless it is 0, that take each request once, by its TLS context."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=limit, keepalive_timeout=IDLE, socket_factory=keepalive_socket),
        cookie_jar=aiohttp.DummyCookieJar(),
        proxy=proxy,
        middlewares=(_send_once,),
    )


async def _send_once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Keeps aiohttp from repeating a request by itself; see `BrokenConnectionError`."""
    try:
        return await send(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise BrokenConnectionError(str(error)) from error
