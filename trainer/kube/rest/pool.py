"""A pool of connections to the API server."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import aiohttp

from trainer.kube.rest.failures import BrokenConnectionError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import SimpleNamespace

    from trainer.kube.clock import Clock

_KEEPALIVE = ((socket.TCP_KEEPIDLE, 30), (socket.TCP_KEEPINTVL, 15), (socket.TCP_KEEPCNT, 4))
"""HTTP/1.1 has no ping: this finds a dead peer of an idle watch within 90 s."""


def open_pool(
    *, limit: int, user_agent: str, proxy: str | None, clock: Clock, resolved: Callable[[str, float], None] | None
) -> aiohttp.ClientSession:
    """A session that sends each request once, and only to connections whose TLS context is that of the request.

    Args:
        limit: connections at most; 0 for any number.
        user_agent: value of the header.
        proxy: URL of an HTTP proxy, or None.
        clock: measures name look-ups.
        resolved: told the host name and the seconds of each name look-up; None measures nothing.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=limit, socket_factory=keepalive_socket),
        headers={"User-Agent": user_agent, "Accept": "application/json"},
        cookie_jar=aiohttp.DummyCookieJar(),
        proxy=proxy,
        middlewares=(_send_once,),
        trace_configs=None if resolved is None else [_look_up_trace(clock, resolved)],
    )


async def _send_once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Keeps aiohttp from repeating a request by itself; see `BrokenConnectionError`."""
    try:
        return await send(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise BrokenConnectionError(str(error)) from error


def _look_up_trace(clock: Clock, resolved: Callable[[str, float], None]) -> aiohttp.TraceConfig:
    trace = aiohttp.TraceConfig()

    async def began(_: aiohttp.ClientSession, context: SimpleNamespace, __: object) -> None:
        context.began = clock.monotonic()

    async def ended(
        _: aiohttp.ClientSession, context: SimpleNamespace, end: aiohttp.TraceDnsResolveHostEndParams
    ) -> None:
        resolved(end.host, clock.monotonic() - context.began)

    trace.on_dns_resolvehost_start.append(began)
    trace.on_dns_resolvehost_end.append(ended)
    return trace


def keepalive_socket(address: tuple[Any, ...]) -> socket.socket:
    """A socket for this result of `getaddrinfo` that finds out when its peer is dead."""
    family, kind, protocol, *_ = address
    sock = socket.socket(family, kind, protocol)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE:
        sock.setsockopt(socket.IPPROTO_TCP, option, value)
    return sock
