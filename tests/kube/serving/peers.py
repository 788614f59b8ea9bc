"""An HTTP server with limits, and peers that send what they like."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

import anyio
from aiohttp import web

from trainer.kube.metrics import Metrics
from trainer.kube.metrics.servers import DROP_REASONS
from trainer.kube.serving.connection import ConnectionLimits
from trainer.kube.serving.http_server import HttpServer, HttpServerOptions
from trainer_kube_testing import ManualClock, eventually

REQUEST = b"GET /ok HTTP/1.1\r\nHost: h\r\n\r\n"


class Served:
    """A server that runs, and what its handlers wait for."""

    def __init__(self, clock: ManualClock, limits: ConnectionLimits, tls: ssl.SSLContext | None) -> None:
        self.clock = clock
        self.metrics = Metrics()
        options = HttpServerOptions("127.0.0.1", 0, limits, tls)
        self.server = HttpServer("test", self._answer, options, clock=clock, metrics=self.metrics)
        self.go_on = anyio.Event()
        self.waiting = 0
        self.bodies: list[bytes] = []
        self.streams: list[web.BaseRequest] = []
        """Requests that are answered with one, once it has begun."""

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        match request.path:
            case "/slow":
                self.waiting += 1
                try:
                    await self.go_on.wait()
                finally:
                    self.waiting -= 1
            case "/body":
                self.bodies.append(await request.content.read())
            case "/large":
                return web.Response(body=bytes(50_000_000))
            case "/stream":
                stream = web.StreamResponse()
                self.server.unlimit(request)
                await stream.prepare(request)
                await stream.write(b"first")
                self.streams.append(request)
                await self.go_on.wait()
                await stream.write(b"last")
                return stream
            case "/broken":
                raise KeyError("the secret")
        return web.Response(text="ok")

    @property
    def port(self) -> int:
        return self.server.address[1]

    @property
    def connections(self) -> int:
        return int(self._sample("connections", server="test"))

    @property
    def dropped(self) -> dict[str, int]:
        """How many connections were ended, by reason; reasons that have not occurred are left out."""
        counts = {
            reason: int(self._sample("connections_dropped_total", server="test", reason=reason))
            for reason in DROP_REASONS
        }
        return {reason: count for reason, count in counts.items() if count}

    def answered(self, code: int) -> int:
        return int(self._sample("requests_total", server="test", code=str(code)))

    def _sample(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(f"trainer_kube_http_{name}", labels) or 0

    async def count(self, connections: int) -> None:
        """Wait until so many connections are open."""
        await eventually(lambda: self.connections == connections, within=10, what=f"{connections} connections")


@asynccontextmanager
async def serving(tls: ssl.SSLContext | None = None, **limits: float) -> AsyncIterator[Served]:
    """A server that runs, with limits of its own."""
    served = Served(ManualClock(), ConnectionLimits(**limits), tls)  # type: ignore[arg-type]
    stopping = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(served.server.run, stopping.wait)
        await served.server.started.wait()
        try:
            yield served
        finally:
            served.go_on.set()
            stopping.set()


class Peer:
    """One connection to it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    @asynccontextmanager
    async def connected(cls, port: int, *data: bytes, tls: ssl.SSLContext | None = None) -> AsyncIterator[Peer]:
        """A peer that has sent something."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
        peer = cls(reader, writer)
        try:
            for part in data:
                await peer.send(part)
            yield peer
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def status(self) -> int:
        """Of the next answer, whose body is read, too."""
        with anyio.fail_after(10):
            head = await self.reader.readuntil(b"\r\n\r\n")
            for line in head.lower().split(b"\r\n"):
                if line.startswith(b"content-length:"):
                    await self.reader.readexactly(int(line.split(b":")[1]))
        return int(head.split()[1])

    async def is_ended(self) -> bool:
        """Wait until the server has ended the connection; whether nothing came before."""
        with anyio.fail_after(10):
            try:
                return not await self.reader.read()
            except ConnectionError:
                return True


def connected(served: Served, *data: bytes, tls: ssl.SSLContext | None = None) -> AbstractAsyncContextManager[Peer]:
    """A peer of this server that has sent something."""
    return Peer.connected(served.port, *data, tls=tls)
