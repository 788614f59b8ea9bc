"""A webhook over real TLS on the loopback interface, whose answers a test decides."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

from aiohttp import web

from packages.devcluster.tests.apiserver.admission.certificates import Certificate, issue
from trainer.kube.objects import Object

Answer: TypeAlias = Callable[[Object], Awaitable[Object | web.Response]]
"""Makes the `response` of a review (without its uid) from its `request`, or a whole HTTP answer."""


class WebhookServer:
    """What a running server has been asked, and where it is."""

    def __init__(self, certificate: Certificate) -> None:
        self.certificate = certificate
        self.port = 0
        self.requests: list[Object] = []
        """The `request` of each review, in the order in which they came."""
        self.paths: list[str] = []
        """Path, query and Host header of each."""
        self.answers: dict[str, Answer] = {}
        """By path; others are allowed."""
        self.drops = 0
        """How many of the next connections are closed instead of being answered."""

    @property
    def url(self) -> str:
        """URL without a path."""
        return f"https://127.0.0.1:{self.port}"

    def named(self, path: str) -> list[Object]:
        """The requests that came to a path."""
        pairs = zip(self.paths, self.requests, strict=True)
        return [request for called, request in pairs if called.partition("?")[0] == path]

    async def handle(self, request: web.Request) -> web.Response:
        """Answer one review."""
        review = await request.json()
        self.requests.append(review["request"])
        self.paths.append(f"{request.path_qs} {request.host}")
        if self.drops and request.transport is not None:
            self.drops -= 1
            request.transport.abort()
        answer = self.answers.get(request.path)
        response = {"allowed": True} if answer is None else await answer(review["request"])
        if isinstance(response, web.Response):
            return response
        head = {"kind": review["kind"], "apiVersion": review["apiVersion"]}
        return web.json_response({**head, "response": {"uid": review["request"]["uid"], **response}})


@asynccontextmanager
async def webhook_server(directory: Path, certificate: Certificate | None = None) -> AsyncIterator[WebhookServer]:
    """A running webhook server."""
    server = WebhookServer(certificate or issue(directory))
    async with listening(server, server.certificate.server_context()):
        yield server


@asynccontextmanager
async def listening(server: WebhookServer, context: ssl.SSLContext | None) -> AsyncIterator[None]:
    """Let a server listen, without TLS when there is no context."""
    application = web.Application(client_max_size=16 * 1024 * 1024)
    application.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        server.port = runner.addresses[0][1]
        yield
    finally:
        await runner.cleanup()


def always(**response: Any) -> Answer:
    """The same response to every review."""

    async def answer(request: Object) -> Object:
        return response

    return answer


def responding(response: web.Response) -> Answer:
    """The same HTTP answer to every review."""

    async def answer(request: Object) -> web.Response:
        return web.Response(status=response.status, body=response.body, headers=response.headers)

    return answer


def patching(*operations: Object) -> Answer:
    """Changes every object by a JSON patch."""
    return always(allowed=True, patchType="JSONPatch", patch=encoded(operations))


def encoded(operations: Any) -> str:
    """A JSON patch as a response carries it."""
    return base64.b64encode(json.dumps(operations).encode()).decode()
