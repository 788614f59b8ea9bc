"""A server that goes on answering whoever else connects."""

from __future__ import annotations

import asyncio
import gc
import socket
import tracemalloc
from asyncio.sslproto import SSLProtocol
from contextlib import AsyncExitStack, suppress
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from aiohttp import web
from structlog.testing import capture_logs

from tests.kube.certificates import Authority
from tests.kube.serving.peers import REQUEST, Peer, Served, connected, serving
from tests.kube.webhook.serving import client_context
from trainer.kube.errors import ConfigurationError
from trainer.kube.memory import limit_memory
from trainer.kube.metrics import Metrics
from trainer.kube.serving import connection
from trainer.kube.serving.certificates import ServingCertificate
from trainer.kube.serving.connection import ConnectionLimits
from trainer.kube.serving.http_server import HttpServer, HttpServerOptions
from trainer.kube.serving.tls import ServingTls
from trainer_kube_testing import ManualClock, eventually, no_stray_tasks, settle

AUTHORITY = Authority()
SLOW = b"GET /slow HTTP/1.1\r\nHost: h\r\n\r\n"
CHUNKED = b"POST /body HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"


async def tls_of_server() -> ServingTls:
    tls = ServingTls()
    pair = AUTHORITY.issue("server", "127.0.0.1")
    await tls.install(ServingCertificate(pair.chain, pair.key))
    return tls


async def assert_serves(served: Served) -> None:
    """Somebody who means it is answered."""
    async with connected(served, REQUEST) as peer:
        assert await peer.status() == 200


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\r\n\r\n", id="empty-lines"),
        pytest.param(b"GET", id="begin"),
        pytest.param(b"GET /ok HTTP/1.1\r\nHost: h\r\nX: ", id="in-a-header"),
        pytest.param(b"GET /ok HTTP/1.1\r\nHost: h\r\n", id="before-the-end"),
    ],
)
async def test_slow_head(data: bytes) -> None:
    """A request must have come within ten seconds, however it trickles in."""
    async with serving() as served, connected(served, data) as peer:
        await served.count(1)
        for _ in range(9):
            await served.clock.advance(1)
            await peer.send(b"x" if data.endswith(b" ") else b"")
        assert not served.dropped
        await served.clock.advance(1)
        assert await peer.is_ended()
        await served.count(0)
        assert served.dropped == {"slow_head": 1}


async def test_a_stream_that_gives_way() -> None:
    """A connection that is dropped ends at once, with its handler, and is counted."""
    async with serving() as served, connected(served, b"GET /stream HTTP/1.1\r\nHost: h\r\n\r\n") as peer:
        await eventually(lambda: bool(served.streams), within=10)
        served.server.drop(served.streams[0])
        await peer.is_ended()
        await served.count(0)
        assert served.dropped == {"crowded": 1}
        served.server.drop(served.streams[0])
        assert served.dropped == {"crowded": 1}


async def test_stream() -> None:
    """An answer without a limit is read for as long as it comes, and ends with the peer."""
    async with serving() as served, connected(served, b"GET /stream HTTP/1.1\r\nHost: h\r\n\r\n") as peer:
        await peer.reader.readuntil(b"first")
        await served.clock.advance(10 * connection.REQUEST_TIMEOUT)
        served.go_on.set()
        await peer.reader.readuntil(b"last")
        assert not served.dropped
    await served.count(0)


async def test_next_request_has_its_own_time() -> None:
    """Ten seconds from its first byte; until then, the connection is idle."""
    async with serving() as served, connected(served, REQUEST) as peer:
        assert await peer.status() == 200
        await served.clock.advance(80)
        await peer.send(REQUEST[:-1])
        await settle()
        await served.clock.advance(9)
        await peer.send(REQUEST[-1:])
        assert await peer.status() == 200
        await peer.send(b"\r\n")
        await settle()
        await served.clock.advance(11)
        assert await peer.is_ended()
        assert served.dropped == {"slow_head": 1}


async def test_idle_connection() -> None:
    """It is closed after a while, and not before."""
    async with serving() as served, connected(served, REQUEST) as peer:
        assert await peer.status() == 200
        await served.clock.advance(89)
        assert served.connections == 1
        await served.clock.advance(1)
        assert await peer.is_ended()
        assert served.dropped == {"idle": 1}


async def test_answer_that_is_not_read() -> None:
    """A peer that asks and does not read keeps neither connection nor handler forever."""
    async with no_stray_tasks(), serving() as served, connected(served, b"GET /large HTTP/1.1\r\nHost: h\r\n\r\n"):
        await eventually(lambda: served.answered(200) == 1, within=10)
        await served.clock.advance(91)
        await served.count(0)
        assert served.dropped == {"idle": 1}


async def test_handler_that_does_not_end() -> None:
    """It is given up with its connection."""
    async with (
        no_stray_tasks(),
        serving() as served,
        connected(served, SLOW) as peer,
    ):
        await eventually(lambda: served.waiting == 1, within=10)
        await served.clock.advance(60)
        assert await peer.is_ended()
        await eventually(lambda: served.waiting == 0, within=10)
        assert served.dropped == {"slow_request": 1}


async def test_handler_of_a_peer_that_has_gone() -> None:
    """Nobody waits for its answer."""
    async with serving() as served:
        async with connected(served, SLOW):
            await eventually(lambda: served.waiting == 1, within=10)
        await eventually(lambda: served.waiting == 0, within=10)
        assert served.dropped == {}


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: h\r\nX: " + b"x" * 70_000, id="endless-header"),
        pytest.param(b"GET /" + b"x" * 70_000, id="endless-path"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: h\r\n" + b"X: y\r\n" * 20_000, id="many-headers"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: h\r\n" + b"X: y\r\n" * 100 + b"\r\n", id="more-headers-than-allowed"),
        pytest.param(b"GET / HTTP/9.9\r\n\r\n", id="version"),
        pytest.param(b"GET /ok HTTP/1.1\nHost: h\n\n", id="bare-line-feeds"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", id="two-lengths"),
        pytest.param(
            b"POST /body HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            id="length-and-chunks",
        ),
        pytest.param(CHUNKED + b"xyz\r\n", id="no-chunk"),
        pytest.param(
            b"POST /body HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + b"f" * 40 + b"\r\n",
            id="huge-chunk",
        ),
        pytest.param(b"GET / HTTP/1.1\r\nHost: h\r\nA: b\x00c\r\n\r\n", id="null-byte"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00", id="http-2"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\r\n\r\n", id="tls-without-tls"),
    ],
)
async def test_what_is_no_request(data: bytes) -> None:
    """It is answered with 4xx and the end of the connection, without a traceback, and does no harm to others."""
    with capture_logs() as logs:
        async with no_stray_tasks(), serving() as served:
            async with connected(served) as peer:
                await peer.send(data)
                with anyio.fail_after(10):
                    try:
                        answer = await peer.reader.read()
                    except ConnectionError:
                        answer = b""
                assert not answer or answer[9:12] in {b"400", b"431"}, answer[:100]
                assert b"aiohttp" not in answer
                assert b"Python" not in answer
            await served.count(0)
            assert not served.bodies
            await assert_serves(served)
    assert not [entry for entry in logs if entry.get("exc_info")]
    for entry in logs:
        assert len(str(entry.get("problem", ""))) <= 200


async def test_requests_one_after_the_other() -> None:
    """Each has its answer, on one connection, also when the second one is there before the first is answered."""
    async with serving() as served, connected(served, REQUEST * 5) as peer:
        assert [await peer.status() for _ in range(5)] == [200] * 5
        await peer.send(REQUEST)
        assert await peer.status() == 200


@pytest.mark.parametrize(
    "tail",
    [
        pytest.param(REQUEST * 40_000, id="many-small"),
        pytest.param((b"GET / HTTP/1.1\r\nHost: h\r\nX: " + b"x" * 8000 + b"\r\n\r\n") * 200, id="large"),
        pytest.param(b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200_000, id="endless-head"),
    ],
)
async def test_what_is_sent_before_the_answer_is_bounded(tail: bytes) -> None:
    """A peer cannot pile up requests behind one that takes long."""
    async with no_stray_tasks(), serving() as served:
        async with connected(served, SLOW) as peer:
            await eventually(lambda: served.waiting == 1, within=10)
            with anyio.move_on_after(5):
                with suppress(ConnectionError):
                    await peer.send(tail)
            await eventually(lambda: served.connections == 0 or not _is_reading(served), within=10)
        await served.count(0)
        await assert_serves(served)


def _is_reading(served: Served) -> bool:
    """Whether the server takes more from its only connection."""
    [connection] = served.server._connections.values()
    assert connection._transport is not None
    return connection._transport.is_reading()


async def test_upgrades_are_ignored() -> None:
    """A request to upgrade to WebSockets or HTTP/2 is answered as any other, and so is the next request."""
    upgrade = b"GET /ok HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    async with serving() as served, connected(served, upgrade, REQUEST) as peer:
        assert await peer.status() == 200
        assert await peer.status() == 200


async def test_bytes_after_an_upgrade_are_bounded() -> None:
    """Bytes after a request to upgrade, which aiohttp would keep for the other protocol, are bounded."""
    upgrade = b"GET /slow HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    async with serving() as served, connected(served, upgrade) as peer:
        await eventually(lambda: served.waiting == 1, within=10)
        with anyio.move_on_after(5):
            with suppress(ConnectionError):
                await peer.send(bytes(20_000_000))
        await eventually(lambda: served.connections == 0 or not _is_reading(served), within=10)


async def test_body_of_a_request_that_nobody_reads() -> None:
    """The answer comes, and the rest is read for a short time only."""
    head = b"POST /ok HTTP/1.1\r\nHost: h\r\nContent-Length: 100000000\r\n\r\n"
    async with serving() as served, connected(served, head, bytes(100_000)) as peer:
        assert await peer.status() == 200
        await served.clock.advance(5)
        await peer.is_ended()
        await served.count(0)


async def test_compressed_body_is_not_unpacked() -> None:
    """It arrives as it was sent."""
    body = b"\x1f\x8b\x08\x00"
    head = b"POST /body HTTP/1.1\r\nHost: h\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n"
    async with serving() as served, connected(served, head + body) as peer:
        assert await peer.status() == 200
        assert served.bodies == [body]


async def test_large_body_in_small_chunks() -> None:
    """As long as its reader takes it, it is no abuse."""
    async with serving() as served, connected(served, CHUNKED + b"3e8\r\n" + b"\r\n" * 500 + b"\r\n") as peer:
        for _ in range(2_000):
            await peer.send(b"3e8\r\n" + b"x" * 1000 + b"\r\n")
        await peer.send(b"0\r\n\r\n")
        assert await peer.status() == 200
        assert [len(body) for body in served.bodies] == [2_001_000]
        assert served.dropped == {}


async def test_large_body_at_once() -> None:
    """However fast it comes, it waits for its reader, before the handler is called as well."""
    head = b"POST /body HTTP/1.1\r\nHost: h\r\nContent-Length: 20000000\r\n\r\n"
    tls = await tls_of_server()
    context = client_context(AUTHORITY.pem)
    async with serving(tls.context) as served, connected(served, head + bytes(20_000_000), tls=context) as peer:
        assert await peer.status() == 200
        assert [len(body) for body in served.bodies] == [20_000_000]
        assert served.dropped == {}


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 11, 64, 100, 1000])
async def test_requests_in_pieces(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a request is cut on its way makes no difference, nor does what its body looks like."""
    monkeypatch.setattr(connection, "MAX_HEAD_BYTES", 200)
    with_body = b"POST /body HTTP/1.1\r\nHost: h\r\nContent-Length: 12\r\n\r\nGET\r\n\r\n\r\n\r\n/"
    in_chunks = CHUNKED + b"4\r\n\r\n\r\n\r\n5\r\nG\r\n\r\n\r\n0\r\n\r\n"
    data = (REQUEST + with_body + in_chunks) * 3
    async with serving() as served, connected(served) as peer:
        for start in range(0, len(data), size):
            await peer.send(data[start : start + size])
            await settle()
        assert [await peer.status() for _ in range(9)] == [200] * 9
        assert served.bodies == [b"GET\r\n\r\n\r\n\r\n/", b"\r\n\r\nG\r\n\r\n"] * 3
        assert served.dropped == {}


async def test_bytes_beyond_a_head_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A head that is too large is answered with 431, and what follows a request is no longer than a head may be."""
    monkeypatch.setattr(connection, "MAX_HEAD_BYTES", 200)
    async with serving() as served:
        async with connected(served, b"GET /ok HTTP/1.1\r\nX: " + b"x" * 200) as peer:
            assert await peer.status() == 431
        async with connected(served, SLOW) as peer:
            await eventually(lambda: served.waiting == 1, within=10)
            await peer.send(bytes(201))
            assert await peer.is_ended()
        assert served.dropped == {"large_head": 1, "pipelining": 1}


async def test_head_whose_end_comes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """The body after it does not count as a part of the head."""
    monkeypatch.setattr(connection, "MAX_HEAD_BYTES", 200)
    head = b"POST /body HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n"
    async with serving() as served, connected(served) as peer:
        for part in (head[:-3], head[-3:-1], head[-1:] + bytes(1000)):
            await peer.send(part)
            await settle()
        assert await peer.status() == 200
        assert served.dropped == {}


async def test_half_open_connections_give_way() -> None:
    """However many there are, the oldest of them goes, and who means it is answered."""
    async with no_stray_tasks(), serving(max_connections=20) as served, AsyncExitStack() as stack:
        peers = [await stack.enter_async_context(connected(served, b"GET /")) for _ in range(200)]
        await assert_serves(served)
        assert served.connections <= 20
        assert served.dropped["crowded"] >= 180
        assert await peers[0].is_ended()


async def test_idle_connections_give_way() -> None:
    """An unused one is worth less than a new one."""
    async with serving(max_connections=5) as served, AsyncExitStack() as stack:
        for _ in range(5):
            peer = await stack.enter_async_context(connected(served, REQUEST))
            assert await peer.status() == 200
        await assert_serves(served)


async def test_bodies_that_do_not_come_give_way() -> None:
    """A request is only worth waiting for when it is complete."""
    head = b"POST /body HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n"
    async with no_stray_tasks(), serving(max_connections=5) as served, AsyncExitStack() as stack:
        for _ in range(5):
            await stack.enter_async_context(connected(served, head))
        await eventually(lambda: served.connections == 5, within=10)
        await assert_serves(served)


async def test_requests_under_way_do_not_give_way() -> None:
    """New connections wait with the kernel until one of them is answered."""
    async with serving(max_connections=3) as served, AsyncExitStack() as stack:
        peers = [await stack.enter_async_context(connected(served, SLOW)) for _ in range(3)]
        await eventually(lambda: served.waiting == 3, within=10)
        late = await stack.enter_async_context(connected(served, REQUEST))
        await settle()
        assert served.connections == 3
        served.go_on.set()
        assert await late.status() == 200
        assert [await peer.status() for peer in peers[1:]] == [200, 200]


async def test_memory_stays_flat() -> None:
    """A thousand half-open connections one after the other leave nothing behind."""
    async with serving(max_connections=50) as served:

        async def attack() -> None:
            async with AsyncExitStack() as stack:
                for _ in range(250):
                    await stack.enter_async_context(connected(served, b"GET / HTTP/1.1\r\nX: " + b"x" * 5000))
            await served.count(0)

        await attack()
        gc.collect()
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            await attack()
            gc.collect()
            after, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert after - before < 500_000
        assert peak - before < 30_000_000


async def test_handshake_that_does_not_come() -> None:
    """Who says nothing, or nothing that is TLS, is not waited for forever; others shake hands meanwhile."""
    tls = await tls_of_server()
    async with no_stray_tasks(), serving(tls.context) as served, connected(served) as silent:
        await served.count(1)
        async with connected(served, b"GET / HTTP/1.1\r\n\r\n") as plain:
            await plain.is_ended()
        await eventually(lambda: served.dropped == {"handshake": 1}, within=10)
        await served.clock.advance(9)
        context = client_context(AUTHORITY.pem)
        async with connected(served, REQUEST, tls=context) as peer:
            assert await peer.status() == 200
        await served.clock.advance(1)
        assert await silent.is_ended()
        assert served.dropped == {"handshake": 2}


async def test_handshakes_give_way() -> None:
    """Those that never end do not keep others out, and are bounded."""
    tls = await tls_of_server()
    async with no_stray_tasks(), serving(tls.context, max_connections=10) as served, AsyncExitStack() as stack:
        for _ in range(100):
            await stack.enter_async_context(connected(served))
        async with connected(served, REQUEST, tls=client_context(AUTHORITY.pem)) as peer:
            assert await peer.status() == 200
        assert served.connections <= 10


async def test_tls_connection_weighs_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of them fit into some megabytes."""
    monkeypatch.setattr(SSLProtocol, "max_size", SSLProtocol.max_size)
    limit_memory()
    tls = await tls_of_server()
    context = client_context(AUTHORITY.pem)
    async with serving(tls.context) as served, AsyncExitStack() as stack:
        await stack.enter_async_context(connected(served, tls=context))
        tracemalloc.start()
        try:
            for _ in range(20):
                await stack.enter_async_context(connected(served, tls=context))
            await settle()
            used, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        # Both ends of each.
        assert used / 20 < 250_000


@pytest.mark.parametrize(
    ("request_line", "server"),
    [
        pytest.param(b"GET /ok HTTP/1.1", b"Server: trainer.kube", id="answered"),
        pytest.param(b"GET /broken HTTP/1.1", b"Server: trainer.kube", id="failed"),
        pytest.param(b"GET / HTTP/9.9", b"Server: trainer.kube", id="malformed"),
    ],
)
async def test_versions_are_not_reported(request_line: bytes, server: bytes) -> None:
    """Neither answers of handlers nor those to malformed requests say which library in which version reads them."""
    async with serving() as served, connected(served, request_line + b"\r\nHost: h\r\n\r\n") as peer:
        with anyio.fail_after(10):
            head = await peer.reader.readuntil(b"\r\n\r\n")
    assert [line for line in head.split(b"\r\n") if line.startswith(b"Server:")] == [server]


async def test_handler_that_raises() -> None:
    """The peer learns no details; they are in the log."""
    with capture_logs() as logs:
        async with serving() as served, connected(served, b"GET /broken HTTP/1.1\r\nHost: h\r\n\r\n") as peer:
            head = await peer.reader.readuntil(b"\r\n\r\n")
            assert b" 500 " in head
            assert b"secret" not in await peer.reader.readexactly(33)
            assert served.answered(500) == 1
    [entry] = [entry for entry in logs if entry["log_level"] == "error"]
    assert (entry["event"], entry["server"], entry["exc_info"]) == ("could not answer request", "test", True)


async def test_stop_waits_for_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests under way are answered, however late, idle connections closed, new ones refused."""
    monkeypatch.setattr("trainer.kube.serving.http_server._FLUSH_TIMEOUT", 0.001)
    clock, metrics = ManualClock(), Metrics()
    stopping, go_on, asked = anyio.Event(), anyio.Event(), anyio.Event()

    async def answer(request: web.BaseRequest) -> web.Response:
        asked.set()
        await go_on.wait()
        return web.Response(text="late")

    server = HttpServer("test", answer, HttpServerOptions("127.0.0.1", 0), clock=clock, metrics=metrics)
    async with no_stray_tasks(), anyio.create_task_group() as tasks:
        tasks.start_soon(server.run, stopping.wait)
        await server.started.wait()
        reader, writer = await asyncio.open_connection(*server.address)
        _, idle = await asyncio.open_connection(*server.address)
        writer.write(REQUEST)
        await asked.wait()
        stopping.set()
        with anyio.fail_after(10):
            while await _accepts(server):
                await anyio.lowlevel.checkpoint()
        for _ in range(20):
            await settle()
        go_on.set()
        assert b"late" in await reader.read()
        for each in (writer, idle):
            each.close()


async def _accepts(server: HttpServer) -> bool:
    try:
        _, writer = await asyncio.open_connection(*server.address)
    except ConnectionError:
        return False
    writer.close()
    return True


@pytest.mark.parametrize("turns", range(8))
async def test_cancellation(turns: int, unused_tcp_port: int) -> None:
    """Whenever it comes, nothing is left, and the port is free."""
    options = HttpServerOptions("127.0.0.1", unused_tcp_port)

    async def answer(request: web.BaseRequest) -> web.Response:
        return web.Response()

    server = HttpServer("test", answer, options, clock=ManualClock(), metrics=Metrics())
    async with no_stray_tasks(), anyio.create_task_group() as tasks:
        tasks.start_soon(server.run, anyio.sleep_forever)
        for _ in range(turns):
            await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    socket.create_server(("127.0.0.1", unused_tcp_port)).close()


async def test_host_name(unused_tcp_port: int) -> None:
    """All addresses of a name are listened on."""
    served = Served(ManualClock(), ConnectionLimits(), None)
    options = HttpServerOptions("localhost", unused_tcp_port)
    server = HttpServer("test", served._answer, options, clock=ManualClock(), metrics=Metrics())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.run, anyio.sleep_forever)
        await server.started.wait()
        reader, writer = await asyncio.open_connection("127.0.0.1", unused_tcp_port)
        await Peer(reader, writer).send(REQUEST)
        assert await Peer(reader, writer).status() == 200
        writer.close()
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("host", "problem"),
    [
        pytest.param("203.0.113.1", "on 203.0.113.1, port 0: Cannot assign requested address", id="not-ours"),
        pytest.param("no.such.host.invalid", "on no.such.host.invalid, port 0: ", id="unknown"),
    ],
)
async def test_address_that_is_not_ours(host: str, problem: str) -> None:
    """The error names it and what to do."""
    served = Served(ManualClock(), ConnectionLimits(), None)
    options = HttpServerOptions(host, 0)
    server = HttpServer("webhooks", served._answer, options, clock=ManualClock(), metrics=Metrics())
    with pytest.raises(ConfigurationError, match=f"webhooks cannot be served {problem}.*; choose another address"):
        await server.run(anyio.sleep_forever)


async def test_out_of_file_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection gives way, and after a second it is tried again."""
    async with serving() as served, connected(served, b"GET /") as first:
        await served.count(1)
        accept, refused = socket.socket.accept, 0

        def exhausted(listener: socket.socket) -> Any:
            nonlocal refused
            if not refused:
                refused += 1
                raise OSError(24, "Too many open files")
            return accept(listener)

        monkeypatch.setattr(socket.socket, "accept", exhausted)
        async with connected(served, REQUEST) as peer:
            assert await first.is_ended()
            await served.clock.advance(1)
            assert await peer.status() == 200
        assert served.dropped == {"crowded": 1}
