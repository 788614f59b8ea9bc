"""Streams that are read now and then, over real connections."""

from __future__ import annotations

import asyncio
import gc
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias

import aiohttp
import anyio
import pytest

from tests.kube.certificates import Authority
from tests.kube.conftest import Background
from tests.kube.rest.test_transport import PatientClock
from trainer.kube.clock import Clock
from trainer.kube.errors import TransportError
from trainer.kube.podlogs.container_log import interruption_of
from trainer.kube.rest.credentials import FixedCredentials
from trainer.kube.rest.paced_stream import MAX_SPEED_UP
from trainer.kube.rest.request import Request
from trainer.kube.rest.tls import ClientTls
from trainer.kube.rest.transport import Endpoint, Transport
from trainer_kube_testing import ManualClock, settle

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
    assert len(found) < len(pieces) or size > 1000
    assert all(PACE / MAX_SPEED_UP <= pause <= PACE for pause in clock.pauses[1:])


async def test_a_stream_that_has_fallen_behind_catches_up() -> None:
    """A large read is followed by the next one sooner."""
    text = bytes(1 << 20)

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


async def cut_off(peer: Peer) -> None:
    """Leaves in the middle of a chunk, politely."""
    await peer.send(HEAD, b"5\r\nab")


async def aborted(peer: Peer) -> None:
    """Leaves in the middle of everything."""
    await peer.send(HEAD, chunk(b"ab"))
    peer.writer.transport.abort()


@pytest.mark.parametrize(
    ("script", "message"),
    [
        pytest.param(cut_off, "the server closed the connection .*not completed", id="cut-off"),
        pytest.param(aborted, "the server closed the connection", id="aborted"),
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
            assert await failing == ("silent", "timed out: the server sent nothing for too long")


async def _failing_next(chunks: AsyncIterator[bytes]) -> tuple[str, str]:
    """What a follower of logs takes it for, and the text without the address."""
    with pytest.raises(TransportError) as raised:
        await anext(chunks)
    return interruption_of(raised.value, was_connected=True).value, str(raised.value).partition("/log: ")[2]


@pytest.mark.parametrize("pace", [pytest.param(PACE, id="paced"), pytest.param(0, id="unpaced")])
async def test_a_malformed_chunk_ends_a_stream(tls: bool, pace: float) -> None:
    """However long after the head it comes, and whatever its reader waits for."""
    go_on = anyio.Event()

    async def script(peer: Peer) -> None:
        await peer.send(HEAD, chunk(b"ab"))
        await go_on.wait()
        await peer.send(b"what?\r\n")
        await peer.reader.read()

    with anyio.fail_after(20):
        async with (
            LogServer(script, tls=tls).running() as server,
            connected(server, PatientClock()) as transport,
            transport.stream(LOG, pace=pace) as chunks,
        ):
            assert await anext(chunks) == b"ab"
            go_on.set()
            assert "not HTTP/1.1 as it should be" in (await _failing_next(chunks))[1]


async def test_a_connection_keeps_no_bodies(tls: bool) -> None:
    """One connection may serve logs for days, one after the other: nothing of those that have ended stays with it."""
    logs, go_on = 20, asyncio.Queue[None]()

    async def script(peer: Peer) -> None:
        for _ in range(logs):
            await peer.send(HEAD)
            await go_on.get()
            await peer.send(chunk(b"one\n"), END)
            with suppress(asyncio.IncompleteReadError):
                await peer.reader.readuntil(b"\r\n\r\n")

    with anyio.fail_after(20):
        async with LogServer(script, tls=tls).running() as server, connected(server, PatientClock()) as transport:
            before = _bodies()
            for _ in range(logs):
                async with transport.stream(LOG) as chunks:
                    go_on.put_nowait(None)
                    assert b"".join([found async for found in chunks]) == b"one\n"
            assert len(server.peers) == 1
            assert _bodies() - before <= 1


async def test_a_connection_that_is_lost_after_a_log(caplog: pytest.LogCaptureFixture) -> None:
    """The exception with which it ends is nobody's: asyncio does not complain that it was not retrieved."""
    with anyio.fail_after(20):
        await _read_and_lose()
    gc.collect()
    assert "never retrieved" not in caplog.text


async def _read_and_lose() -> None:
    go_on, is_read = anyio.Event(), anyio.Event()

    async def script(peer: Peer) -> None:
        await peer.send(HEAD)
        await go_on.wait()
        await peer.send(chunk(b"one\n"), END)
        await is_read.wait()
        reset = struct.pack("ii", 1, 0)
        peer.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        peer.writer.transport.abort()

    async with LogServer(script, tls=False).running() as server, connected(server, PatientClock()) as transport:
        async with transport.stream(LOG) as chunks:
            go_on.set()
            assert b"".join([found async for found in chunks]) == b"one\n"
        is_read.set()
        await server.peers[0].closed.wait()
        await settle()
        async with transport.stream(LOG):  # takes the lost connection out of the pool
            pass


def _bodies() -> int:
    gc.collect()
    return sum(isinstance(each, aiohttp.StreamReader) for each in gc.get_objects())
