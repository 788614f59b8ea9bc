"""HTTP protocol: aiohttp's side of a connection, whose own answers say no more than those of handlers.

aiohttp answers what it cannot read by itself, with its version and that of Python in the header `Server`, and with the
words of its parser in the text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

from aiohttp import web

SERVER = "trainer.kube"
"""Header `Server` of all answers."""


def name_server(response: web.StreamResponse) -> None:
    """Have an answer say what answers, and not in which version."""
    response.headers.setdefault("Server", SERVER)


class HttpProtocol(web.RequestHandler):
    """Reads requests from one connection and writes answers to it."""

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer to a request that could not be read, or that a handler has failed to answer."""
        # Logs it, and refuses to answer where an answer has been begun.
        super().handle_error(request, status, exc, message)
        text = "the request is malformed" if status == HTTPStatus.BAD_REQUEST else HTTPStatus(status).phrase
        response = web.Response(status=status, text=f"{text}\n")
        response.force_close()
        name_server(response)
        return response


class HttpProtocols(web.Server):
    """Makes a protocol for each connection; options as for `web.RequestHandler`."""

    def __init__(self, handler: Callable[[Any], Awaitable[web.StreamResponse]], **options: Any) -> None:
        # When the peer has gone, or was dropped, nobody waits for what a handler does.
        super().__init__(handler, handler_cancellation=True)
        self._options = options

    def __call__(self) -> HttpProtocol:
        """A protocol for a new connection."""
        return HttpProtocol(self, loop=asyncio.get_running_loop(), **self._options)
