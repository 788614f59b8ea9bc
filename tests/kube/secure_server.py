"""An API server on the loopback interface that speaks TLS."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from aiohttp import web
from aiohttp.test_utils import TestServer


class SecureServer:
    """Notes the Authorization header and the name in the client certificate of each request.

    /stream gives "one" and, after `go_on`, "two"; all else a node.
    """

    def __init__(self, context: ssl.SSLContext | None) -> None:
        self.seen: list[tuple[str | None, str | None]] = []
        self.connections: set[object] = set()
        self.accepted: set[tuple[str | None, str | None]] | None = None
        self.port = 0
        self.go_on = anyio.Event()
        self._context = context

    @asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        """Serve, and yield the URL."""
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._answer)
        server = TestServer(application)
        await server.start_server(ssl=self._context)
        self.port = server.port or 0
        try:
            yield f"{'http' if self._context is None else 'https'}://127.0.0.1:{self.port}"
        finally:
            await server.close()

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"one")
        await self.go_on.wait()
        await response.write(b"two")
        return response

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        peer = request.transport.get_extra_info("peercert") or {}
        names = [value for part in peer.get("subject", ()) for name, value in part if name == "commonName"]
        shown = (request.headers.get("Authorization"), names[0] if names else None)
        self.seen.append(shown)
        self.connections.add(request.transport.get_extra_info("peername"))
        if request.path == "/stream":
            return await self._stream(request)
        if self.accepted is not None and shown not in self.accepted:
            status = {"kind": "Status", "reason": "Unauthorized", "message": "Unauthorized"}
            return web.json_response(status, status=401)
        return web.json_response({"kind": "Node"})
