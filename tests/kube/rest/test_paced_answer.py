"""Streams that are read now and then, over real connections."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
import pytest

from tests.kube.certificates import Authority
from tests.kube.rest.test_transport import PatientClock
from trainer.kube.clock import Clock, SystemClock
from trainer.kube.errors import NotFoundError, TransportError, UnauthorizedError
from trainer.kube.metrics import Metrics
from trainer.kube.rest.credentials import FixedCredentials, Identity
from trainer.kube.rest.lean_connection import READ_SIZE
from trainer.kube.rest.paced_answer import MAX_SPEED_UP
from trainer.kube.rest.request import Request
from trainer.kube.rest.tls import ClientTls
from trainer.kube.rest.transport import Endpoint, Transport
from trainer_kube_testing import ManualClock, settle

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.kube.conftest import Background

CA = Authority()
SERVER = CA.server_context("127.0.0.1")
LOG = Request("GET", "/api/v1/namespaces/ns/pods/p/log", {"follow": True, "container": "a b"})
PACE = 0.25

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"

Script: TypeAlias = Callable[["Peer"], Awaitable[None]]


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


class Peer:
    """The server's end of one connection."""

    def __init__(self, request: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.request = request
        self.reader = reader
        self.writer = writer
        self.closed = anyio.Event()

    async def send(self, *parts: bytes) -> None:
        """Send each part in a packet and a TLS record of its own."""
        for part in parts:
            self.writer.write(part)
            await self.writer.drain()


class LogServer:
    """Answers each request with the next script, the last one forever."""

    def __init__(self, *scripts: Script, tls: bool = True) -> None:
        self.scripts = list(scripts)
        self.peers: list[Peer] = []
        self.url = ""
        self._tls = tls

    @asynccontextmanager
    async def running(self) -> AsyncIterator[LogServer]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=SERVER if self._tls else None)
        self.url = f"http{'s' * self._tls}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            server.close()
            for peer in self.peers:
                peer.writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(await reader.readuntil(b"\r\n\r\n"), reader, writer)
        self.peers.append(peer)
        script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
        with suppress(ConnectionError):
            await script(peer)
            writer.close()
        peer.closed.set()


@asynccontextmanager
async def connected(
    server: LogServer, clock: Clock, credentials: FixedCredentials | None = None, **more: Any
) -> AsyncIterator[Transport]:
    endpoint = Endpoint(server.url, tls=ClientTls(ca=CA.pem) if server.url.startswith("https") else None)
    credentials = credentials or FixedCredentials("Bearer t")
    async with Transport(endpoint, credentials, user_agent="trainer/test", clock=clock, **more) as transport:
        yield transport


async def whole(transport: Transport, *, pace: float = PACE, idle_timeout: float | None = None) -> bytes:
    async with transport.stream(LOG, pace=pace, idle_timeout=idle_timeout) as chunks:
        return b"".join([found async for found in chunks])


@pytest.fixture(params=[pytest.param(True, id="tls"), pytest.param(False, id="plain")])
def tls(request: pytest.FixtureRequest) -> bool:
    """Whether the server speaks TLS."""
    return bool(request.param)


async def test_a_paced_stream_waits_between_reads(tls: bool, background: Background, clock: ManualClock) -> None:
    """What arrives during the pause is read after it, many lines at once."""
    go_on, sent = anyio.Event(), anyio.Event()

    async def script(peer: Peer) -> None:
        await peer.send(HEAD, chunk(b"one\n"))
        await go_on.wait()
        await peer.send(*(chunk(b"%d\n" % number) for number in range(30)))
        sent.set()
        await peer.reader.read()

    with anyio.fail_after(20):
        async with (
            LogServer(script, tls=tls).running() as server,
            connected(server, clock) as transport,
            transport.stream(LOG, pace=PACE) as chunks,
        ):
            assert await anext(chunks) == b"one\n"
            following = background(_next(chunks))
            await clock.wait_for_sleepers()
            go_on.set()
            await sent.wait()
            await settle()
            assert not following.done()
            assert clock.sleeping[0] <= PACE
            await clock.advance(PACE)
            found = [await following]
            while not found[-1].endswith(b"29\n"):
                following = background(_next(chunks))
                await clock.wait_for_sleepers()
                assert clock.sleeping == [PACE]
                await clock.advance(PACE)
                found.append(await following)
    assert b"".join(found) == b"".join(b"%d\n" % number for number in range(30))
    assert len(found) < 30


async def _next(chunks: AsyncIterator[bytes]) -> bytes:
    return await anext(chunks)


async def test_the_request_on_the_wire(clock: ManualClock) -> None:
    """It says who asks for what, and that the connection is not used again."""

    async def script(peer: Peer) -> None:
        await peer.send(HEAD + END)

    metrics = Metrics()
    async with LogServer(script).running() as server, connected(server, clock, metrics=metrics) as transport:
        assert await whole(transport) == b""
    [peer] = server.peers
    first, *headers = peer.request.decode().rstrip().split("\r\n")
    assert first == "GET /api/v1/namespaces/ns/pods/p/log?follow=true&container=a+b HTTP/1.1"
    assert dict(header.split(": ", 1) for header in headers) == {
        "Host": server.url.removeprefix("https://"),
        "User-Agent": "trainer/test",
        "Accept": "application/json",
        "Authorization": "Bearer t",
        "Connection": "close",
    }
    labels = {"code": "200", "method": "GET", "host": server.url.removeprefix("https://")}
    assert metrics.registry.get_sample_value("rest_client_requests_total", labels) == 1


@pytest.mark.parametrize(
    "size", [pytest.param(1, id="bytes"), pytest.param(1000, id="lines"), pytest.param(100_000, id="blocks")]
)
async def test_nothing_is_lost(tls: bool, size: int) -> None:
    """Whatever the sizes of chunks, TLS records and reads, and however slow the reader is."""
    text = b"".join(b"line %d\n" % number for number in range(40_000 if size > 1 else 500))
    pieces = [text[start : start + size] for start in range(0, len(text), size)]

    async def script(peer: Peer) -> None:
        await peer.send(HEAD, *(chunk(piece) for piece in pieces), END)

    clock, found = PatientClock(), list[bytes]()
    with anyio.fail_after(60):
        async with (
            LogServer(script, tls=tls).running() as server,
            connected(server, clock) as transport,
            transport.stream(LOG, pace=PACE) as chunks,
        ):
            async for piece in chunks:
                found.append(piece)
                await asyncio.sleep(0)
    assert b"".join(found) == text
    assert len(found) < len(pieces) or size > READ_SIZE
    assert all(PACE / MAX_SPEED_UP <= pause <= PACE for pause in clock.pauses[1:])


async def test_a_stream_that_has_fallen_behind_catches_up() -> None:
    """A large read is followed by the next one sooner."""
    text = bytes(20 * READ_SIZE)

    async def script(peer: Peer) -> None:
        await peer.send(HEAD + chunk(text) + END)

    clock = PatientClock()
    async with LogServer(script, tls=False).running() as server, connected(server, clock) as transport:
        assert await whole(transport) == text
    assert clock.pauses.count(PACE / MAX_SPEED_UP) > 5


async def test_an_ordinary_stream_is_read_no_more_often_than_asked() -> None:
    """Whatever of it arrives between two reads, as long as one read takes it."""
    pieces = [bytes(size) for size in (100, 12_000, 3_000, 15_000, 200)]
    is_read = anyio.Event()

    async def script(peer: Peer) -> None:
        nonlocal is_read
        await peer.send(HEAD)
        for piece in pieces:
            await peer.send(chunk(piece))
            await is_read.wait()
            is_read = anyio.Event()
        await peer.send(END)

    clock = PatientClock()
    with anyio.fail_after(20):
        async with (
            LogServer(script, tls=False).running() as server,
            connected(server, clock) as transport,
            transport.stream(LOG, pace=PACE) as chunks,
        ):
            for piece in pieces:
                assert await anext(chunks) == piece
                is_read.set()
            assert [found async for found in chunks] == []
    assert set(clock.pauses[1:]) == {PACE}


async def test_who_does_not_read_holds_up_the_server(clock: ManualClock) -> None:
    """The server cannot send without end: what nobody reads stays with it, and with the kernel."""
    stuck, size = anyio.Event(), 0

    async def script(peer: Peer) -> None:
        nonlocal size
        await peer.send(HEAD)
        while True:
            size += 1 << 20
            peer.writer.write(chunk(bytes(1 << 20)))
            with anyio.move_on_after(0.05) as scope:
                await peer.writer.drain()
            if scope.cancelled_caught:
                stuck.set()
                await peer.reader.read()

    with anyio.fail_after(60):
        async with (
            LogServer(script).running() as server,
            connected(server, clock) as transport,
            transport.stream(LOG, pace=PACE) as chunks,
        ):
            await anext(chunks)
            await stuck.wait()
    assert size < 1 << 30


@pytest.mark.parametrize(
    ("head", "error"),
    [
        pytest.param("200 OK\r\nContent-Length: 0", None, id="empty"),
        pytest.param("204 No Content", None, id="no-content"),
        pytest.param("404 Not Found\r\nContent-Length: 0", NotFoundError, id="refusal-without-text"),
        pytest.param("200 OK\r\nContent-Length: x", TransportError, id="nonsense-is-not-tried-again"),
    ],
)
async def test_an_answer_ends_where_it_says(tls: bool, head: str, error: type[Exception] | None) -> None:
    """Though the server keeps the connection."""

    async def script(peer: Peer) -> None:
        await peer.send(f"HTTP/1.1 {head}\r\n\r\n".encode())
        await peer.reader.read()

    with anyio.fail_after(5):
        async with LogServer(script, tls=tls).running() as server, connected(server, PatientClock()) as transport:
            with pytest.raises(error) if error else nullcontext():
                assert await whole(transport) == b""
    assert len(server.peers) == 1


async def test_a_dead_address_does_not_keep_from_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host with several addresses is reached at the one that answers."""
    async with LogServer(log, tls=False).running() as server:
        port = int(server.url.rpartition(":")[2])
        with ExitStack() as stack:
            full = stack.enter_context(socket.create_server(("127.0.0.2", port), backlog=0))
            for _ in range(3):  # its queue is full: the next one is not answered
                waiting = stack.enter_context(socket.socket())
                waiting.setblocking(False)
                waiting.connect_ex(full.getsockname())

            async def look_up(*_: object, **__: object) -> list[Any]:
                kind = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "")
                return [(*kind, ("127.0.0.2", port)), (*kind, ("127.0.0.1", port))]

            monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", look_up)
            endpoint = Endpoint(f"http://cluster.example:{port}")
            with anyio.fail_after(10):
                async with Transport(endpoint, FixedCredentials(), user_agent="t", clock=PatientClock()) as transport:
                    assert await whole(transport) == b"line\n"


@asynccontextmanager
async def cut_into(size: int, server: LogServer) -> AsyncIterator[str]:
    """What the server sends arrives in pieces of this size."""
    port = int(server.url.rpartition(":")[2])
    ended = anyio.Event()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        below, above = await asyncio.open_connection("127.0.0.1", port)

        async def upwards() -> None:
            # The reader leaves as soon as it has the last chunk.
            with suppress(ConnectionError):
                while data := await reader.read(65536):
                    above.write(data)
            tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(upwards)
            with suppress(ConnectionError):
                while data := await below.read(size):
                    writer.write(data)
                    await writer.drain()
                    await asyncio.sleep(0)
        for each in (above, writer):
            each.transport.abort()
        await asyncio.sleep(0)
        ended.set()

    listener = await asyncio.start_server(relay, "127.0.0.1", 0)
    try:
        yield f"https://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        await ended.wait()
    finally:
        listener.close()


@pytest.mark.parametrize("size", [1, 7, 100])
@pytest.mark.parametrize(
    "version", [pytest.param(ssl.TLSVersion.TLSv1_2, id="1.2"), pytest.param(ssl.TLSVersion.TLSv1_3, id="1.3")]
)
async def test_tls_in_any_pieces(monkeypatch: pytest.MonkeyPatch, size: int, version: ssl.TLSVersion) -> None:
    """TLS records are read whole, wherever the network splits those of the handshake and of the log."""
    text = b"".join(b"line %d\n" % number for number in range(20))

    async def script(peer: Peer) -> None:
        lines = text.splitlines(keepends=True)
        await peer.send(HEAD, *(chunk(line) for line in lines), chunk(text * 10 * size), END)

    context = CA.server_context("127.0.0.1")
    context.minimum_version = context.maximum_version = version
    monkeypatch.setitem(globals(), "SERVER", context)
    with anyio.fail_after(30):
        async with (
            LogServer(script).running() as server,
            cut_into(size, server) as server.url,
            connected(server, PatientClock()) as transport,
        ):
            assert await whole(transport) == text * (10 * size + 1)


async def cut_off(peer: Peer) -> None:
    """Leaves in the middle of a chunk, politely."""
    await peer.send(HEAD, b"5\r\nab")


async def aborted(peer: Peer) -> None:
    """Leaves in the middle of everything."""
    await peer.send(HEAD, chunk(b"ab"))
    peer.writer.transport.abort()


async def garbled(peer: Peer) -> None:
    """Sends what is no chunk."""
    await peer.send(HEAD, chunk(b"ab"), b"what?\r\n")


async def garbled_log(peer: Peer) -> None:
    """Sends lines where the size of a chunk should be."""
    await peer.send(HEAD, chunk(b"ab"), b"what? a line of the log\n" * 500)


async def undecryptable(peer: Peer) -> None:
    """Sends what is no TLS any more."""
    await peer.send(HEAD, chunk(b"ab"))
    os.write(peer.writer.get_extra_info("socket").fileno(), b"\x17\x03\x03\x00\x20" + bytes(32))
    await peer.reader.read()


@pytest.mark.parametrize(
    ("script", "message"),
    [
        pytest.param(cut_off, "the server closed the connection .*before the answer did", id="cut-off"),
        pytest.param(aborted, "the server closed the connection", id="aborted"),
        pytest.param(garbled, "/log: the answer is not HTTP/1.1 as it should be: .*what", id="garbled"),
        pytest.param(garbled_log, "/log: the answer is not HTTP/1.1 as it should be: .{,200}$", id="garbled-log"),
        pytest.param(undecryptable, "(?i)decrypt|mac", id="undecryptable"),
    ],
)
async def test_broken_streams(script: Script, message: str) -> None:
    """They are no clean ends, and the text says what happened."""
    with anyio.fail_after(20):
        async with LogServer(script).running() as server, connected(server, PatientClock()) as transport:
            with pytest.raises(TransportError, match=message):
                await whole(transport)
            await server.peers[-1].closed.wait()


@pytest.mark.parametrize("pauses", [pytest.param(True, id="in-the-pause"), pytest.param(False, id="waiting")])
async def test_cancellation_closes_the_connection(tls: bool, pauses: bool, background: Background) -> None:
    """The server learns at once that nobody reads any more, without a warning about something left open."""

    async def script(peer: Peer) -> None:
        await peer.send(HEAD, *[chunk(b"one\n")] * pauses)
        await peer.reader.read()

    clock = ManualClock()
    with anyio.fail_after(20):
        async with LogServer(script, tls=tls).running() as server, connected(server, clock) as transport:
            task = background(whole(transport))
            if pauses:
                await clock.wait_for_sleepers()
            else:
                while not server.peers:
                    await settle()
            task.cancel()
            await server.peers[-1].closed.wait()
            await asyncio.wait([task])
    assert task.cancelled()


async def test_idle_timeout(tls: bool, background: Background, clock: ManualClock) -> None:
    """What arrives in a pause is read, however long the pause; then silence is an error."""
    go_on = anyio.Event()

    async def script(peer: Peer) -> None:
        await peer.send(HEAD, chunk(b"one\n"))
        await go_on.wait()
        await peer.send(chunk(b"two\n"))
        await peer.reader.read()

    with anyio.fail_after(20):
        async with (
            LogServer(script, tls=tls).running() as server,
            connected(server, clock) as transport,
            transport.stream(LOG, pace=PACE, idle_timeout=0.2) as chunks,
        ):
            assert await anext(chunks) == b"one\n"
            following = background(_next(chunks))
            await clock.wait_for_sleepers()
            go_on.set()
            await clock.advance(PACE)
            assert await following == b"two\n"
            failing = background(_failing_next(chunks))
            await clock.wait_for_sleepers()
            await clock.advance(PACE)
            assert "timed out: the server sent nothing for too long" in await failing


async def _failing_next(chunks: AsyncIterator[bytes]) -> str:
    with pytest.raises(TransportError) as raised:
        await anext(chunks)
    return str(raised.value)


async def test_a_server_that_does_not_answer(clock: ManualClock) -> None:
    """The idle timeout holds for the head of the answer too."""

    async def script(peer: Peer) -> None:
        await peer.reader.read()

    with anyio.fail_after(20):
        async with LogServer(script).running() as server, connected(server, clock) as transport:
            with pytest.raises(TransportError, match="timed out: the server sent nothing"):
                await whole(transport, idle_timeout=0.05)


def refusal(code: int, **headers: str) -> Script:
    body = b'{"kind": "Status", "code": %d, "message": "no"}' % code
    lines = [f"HTTP/1.1 {code} No", f"Content-Length: {len(body)}", *(f"{key}: {v}" for key, v in headers.items())]

    async def script(peer: Peer) -> None:
        await peer.send("\r\n".join([*lines, "", ""]).encode() + body)

    return script


async def log(peer: Peer) -> None:
    """A short one."""
    await peer.send(HEAD + chunk(b"line\n") + END)


class Renewable(FixedCredentials):
    """Has one more token."""

    def __init__(self) -> None:
        super().__init__("Bearer old")

    async def renew(self, rejected: Identity) -> Identity | None:
        return Identity("Bearer new") if rejected.authorization == "Bearer old" else None


async def test_refusals_are_those_of_every_request() -> None:
    """Typed errors, renewed credentials, and the pause that the server asks for."""
    clock = PatientClock()
    async with LogServer(refusal(404)).running() as server, connected(server, clock) as transport:
        with pytest.raises(NotFoundError, match="no"):
            await whole(transport)
        server.scripts = [refusal(401)]
        with pytest.raises(UnauthorizedError, match="does not accept the credentials"):
            await whole(transport)
        server.scripts = [refusal(429, **{"Retry-After": "7"}), log]
        assert await whole(transport) == b"line\n"
        assert clock.pauses[0] == 7
    async with (
        LogServer(refusal(401), log).running() as server,
        connected(server, clock, Renewable()) as transport,
    ):
        assert await whole(transport) == b"line\n"
    assert [b"Bearer new" in peer.request for peer in server.peers] == [False, True]


async def test_behind_a_proxy_the_pace_holds_too(background: Background, clock: ManualClock) -> None:
    """The stream goes the way that knows proxies, and is read no more often."""
    go_on = anyio.Event()

    async def script(peer: Peer) -> None:
        await peer.send(HEAD, chunk(b"one\n"))
        await go_on.wait()
        await peer.send(chunk(b"two\n"), END)

    with anyio.fail_after(20):
        async with LogServer(script, tls=False).running() as server:
            endpoint = Endpoint("http://cluster.example:6443", proxy=server.url)
            async with (
                Transport(endpoint, FixedCredentials(), user_agent="t", clock=clock) as transport,
                transport.stream(LOG, pace=PACE) as chunks,
            ):
                assert await anext(chunks) == b"one\n"
                following = background(_next(chunks))
                await clock.wait_for_sleepers()
                go_on.set()
                assert clock.sleeping == [PACE]
                await clock.advance(PACE)
                assert await following == b"two\n"
    assert server.peers[0].request.startswith(b"GET http://cluster.example:6443/api")


async def test_many_streams_share_their_buffers() -> None:
    """Each gets its own bytes, and none is left behind."""

    async def script(peer: Peer) -> None:
        name = peer.request.split(b"/pods/")[1].split(b"/")[0]
        await peer.send(HEAD, *(chunk(b"%b %d\n" % (name, number)) for number in range(50)), END)

    found: dict[str, bytes] = {}

    async def follow(transport: Transport, name: str) -> None:
        request = Request("GET", f"/api/v1/namespaces/ns/pods/{name}/log", {})
        async with transport.stream(request, pace=0.01) as chunks:
            found[name] = b"".join([part async for part in chunks])

    with anyio.fail_after(60):
        async with (
            LogServer(script).running() as server,
            connected(server, SystemClock()) as transport,
            anyio.create_task_group() as tasks,
        ):
            for number in range(40):
                tasks.start_soon(follow, transport, f"pod-{number}")
    assert found == {
        f"pod-{number}": b"".join(b"pod-%d %d\n" % (number, line) for line in range(50)) for number in range(40)
    }
