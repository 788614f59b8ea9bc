"""How TLS records are cut; what is made of them is tested in test_paced_answer."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, TypeAlias

import anyio
import pytest

from tests.kube.certificates import Authority
from trainer.kube.rest.failures import ConnectError
from trainer.kube.rest.fair_scheduler import FairScheduler
from trainer.kube.rest.lean_connection import LeanConnection, open_connection

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

CA = Authority()
TLS_1_2 = CA.server_context("127.0.0.1")
TLS_1_2.maximum_version = ssl.TLSVersion.TLSv1_2

Serve: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class ServerTls:
    """The server's end of TLS, which sends nothing by itself."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = TLS_1_2.wrap_bio(self._incoming, self._outgoing, server_side=True)

    async def shake_hands(self) -> bytes:
        """The last messages of the handshake, which the client waits for."""
        while True:
            try:
                self._tls.do_handshake()
                return self._outgoing.read()
            except ssl.SSLWantReadError:
                self._writer.write(self._outgoing.read())
                self._incoming.write(await self._reader.read(4096))

    def record(self, content: bytes) -> bytes:
        self._tls.write(content)
        return self._outgoing.read()


@asynccontextmanager
async def connected(serve: Serve) -> AsyncIterator[LeanConnection]:
    ended = anyio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            await serve(reader, writer)
        writer.close()
        ended.set()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        context = ssl.create_default_context(cadata=CA.pem.decode())
        scheduler = FairScheduler(per_round=1)
        try:
            connection = await open_connection(
                "127.0.0.1", port, context, server_hostname=None, scheduler=scheduler, timeout=20
            )
            try:
                yield connection
            finally:
                connection.close()
        finally:
            await ended.wait()


async def received(connection: LeanConnection, size: int) -> bytes:
    found = b""
    while len(found) < size:
        data = connection.receive()
        if data is None:
            await connection.readable(20)
        elif not data:
            break
        else:
            found += data
    return found


async def test_records_may_begin_with_the_last_messages_of_the_handshake() -> None:
    """A server may send the beginning of a record with them, and the rest later: nothing is lost or held back."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tls = ServerTls(reader, writer)
        last, record = await tls.shake_hands(), tls.record(b"a" * 100)
        writer.write(last + record[:50])
        await reader.read(1)  # the request
        writer.write(record[50:])
        await reader.read()

    with anyio.fail_after(20):
        for _ in range(20):  # what is read at the wrong place is random
            async with connected(serve) as connection:
                await connection.send(b"request")
                assert await received(connection, 100) == b"a" * 100


@pytest.mark.parametrize(
    "greeting",
    [
        pytest.param(b"HTTP/1.1 400 Bad Request\r\n", id="http"),
        pytest.param(b"SSH-2.0-OpenSSH_9.2\r\n", id="ssh"),
        pytest.param(b"220 mail.example ESMTP\r\n", id="smtp"),
    ],
)
async def test_servers_without_tls_are_refused_at_once(greeting: bytes) -> None:
    """Their greetings are no records that would have to be complete first."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(greeting)
        await reader.read()

    with anyio.fail_after(10), pytest.raises(ConnectError) as caught:
        async with connected(serve):
            pass
    assert isinstance(caught.value.cause, ssl.SSLError)


async def test_the_longest_record_fits() -> None:
    """All but one byte of it may have come before the next read."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await ServerTls(reader, writer).shake_hands())
        await reader.read(1)  # the request
        writer.write(b"\x17\x03\x03\x48\x00" + bytes(0x4800 - 1))
        await reader.read()

    with anyio.fail_after(10):
        async with connected(serve) as connection:
            await connection.send(b"request")
            taken = 0
            while taken < 0x4804:
                await connection.readable(10)
                assert connection.receive() is None
                taken += connection.received
            assert connection.receive() is None
