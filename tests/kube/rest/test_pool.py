"""Connection pool."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from trainer.kube.rest.pool import open_pool


async def set_a_cookie(request: web.Request) -> web.Response:
    """Answers with the cookies of the request and sets one."""
    response = web.Response(text=request.headers.get("Cookie", ""))
    # For a host name, since jars drop those of addresses.
    response.set_cookie("session", "1", domain="localhost")
    return response


async def go_on_for_long(_: web.Request) -> web.Response:
    """More than one read, so that the connection is still in use."""
    return web.Response(body=bytes(1 << 24))


@pytest.fixture
async def url() -> AsyncIterator[str]:
    """Of a server that sets cookies."""
    application = web.Application()
    application.router.add_get("/", set_a_cookie)
    application.router.add_get("/long", go_on_for_long)
    async with TestServer(application, host="localhost") as server:
        yield str(server.make_url("/"))


def pool() -> aiohttp.ClientSession:
    return open_pool(limit=1, proxy=None)


async def test_dead_peers_of_idle_connections_are_found(url: str) -> None:
    """TCP asks after 30 s of silence, each 15 s, and gives up after four answers that did not come."""
    async with pool() as session, session.get(f"{url}long") as response:
        assert response.connection is not None
        assert response.connection.transport is not None
        connected = response.connection.transport.get_extra_info("socket")
        assert connected.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        assert [connected.getsockopt(socket.IPPROTO_TCP, option) for option in options] == [30, 15, 4]


async def test_cookies_are_not_kept(url: str) -> None:
    """Load balancers set them to bind a client to one server, which would outlive that server."""
    async with pool() as session:
        for _ in range(2):
            async with session.get(url) as response:
                assert await response.text() == ""
