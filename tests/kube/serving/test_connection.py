"""What one connection may cost, without a socket; how it ends is in the tests of the server."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from trainer.kube.serving import connection as connection_module
from trainer.kube.serving.connection import Connection, ConnectionLimits

if TYPE_CHECKING:
    from aiohttp import web

    from trainer_kube_testing import ManualClock

HEAD = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"


class Http(asyncio.Protocol):
    """aiohttp's side: notes what it gets."""

    def __init__(self) -> None:
        self.received = b""

    def data_received(self, data: bytes) -> None:
        self.received += data


class Transport(asyncio.Transport):
    """Notes what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data


class Line:
    """A connection between the two."""

    def __init__(self, clock: ManualClock) -> None:
        self.http, self.transport = Http(), Transport()
        self.changes = 0
        self.connection = Connection(self.http, clock=clock, limits=ConnectionLimits(), changed=self._count)

    def _count(self) -> None:
        self.changes += 1

    def open(self) -> Connection:
        self.connection.connection_made(self.transport)
        return self.connection


def request(*, is_complete: bool) -> web.BaseRequest:
    """A request whose body has arrived, or not."""
    return cast("web.BaseRequest", SimpleNamespace(content=SimpleNamespace(is_eof=lambda: is_complete)))


async def test_phases_and_their_deadlines(clock: ManualClock) -> None:
    """Each has its own, from its beginning."""
    line = Line(clock)
    assert line.connection.deadline == 10
    await clock.advance(5)
    connection = line.open()
    assert (connection.deadline, connection.can_give_way) == (15, True)
    await clock.advance(5)
    connection.data_received(HEAD[:-1])
    assert (connection.deadline, connection.can_give_way) == (15, True)
    connection.data_received(HEAD[-1:])
    assert (connection.deadline, connection.can_give_way) == (70, False)
    await clock.advance(1)
    connection.begin(request(is_complete=True))
    assert (connection.deadline, connection.can_give_way) == (71, False)
    await clock.advance(1)
    connection.end()
    assert (connection.deadline, connection.can_give_way, line.changes) == (102, True, 1)
    await clock.advance(8)
    connection.data_received(b"G")
    assert (connection.deadline, connection.can_give_way) == (30, True)
    assert line.http.received == HEAD + b"G"


async def test_body_that_does_not_come(clock: ManualClock) -> None:
    """Its request may give way, and what nobody has read is read for a short time only."""
    connection = Line(clock).open()
    connection.data_received(HEAD)
    connection.begin(request(is_complete=False))
    assert connection.can_give_way
    connection.data_received(bytes(10_000_000))
    assert connection.reason is None
    connection.end()
    assert connection.deadline == 4
    connection.data_received(bytes(10_000_000))
    assert connection.reason is None


@pytest.mark.parametrize(
    ("sent", "is_dropped"),
    [
        pytest.param([b"x" * 100], False, id="as-much-as-allowed"),
        pytest.param([b"x" * 101], True, id="more"),
        pytest.param([b"x"] * 101, True, id="byte-by-byte"),
        pytest.param([b"x" * 96 + b"\r\n\r\n" + b"y" * 10_000], False, id="body-does-not-count"),
        pytest.param([b"x" * 101 + b"\r\n\r\n"], True, id="complete-and-more"),
        pytest.param([b"x" * 96 + b"\r", b"\n\r", b"\n" + b"y" * 10_000], False, id="end-in-pieces"),
    ],
)
async def test_size_of_a_head(
    sent: list[bytes], is_dropped: bool, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond it the peer gets an error, and aiohttp nothing more."""
    monkeypatch.setattr(connection_module, "MAX_HEAD_BYTES", 100)
    line = Line(clock)
    connection = line.open()
    for data in sent:
        connection.data_received(data)
    assert connection.reason == ("large_head" if is_dropped else None)
    assert line.transport.written.startswith(b"HTTP/1.1 431 ") == is_dropped
    if is_dropped:
        head, _, body = line.transport.written.partition(b"\r\n\r\n")
        assert f"Content-Length: {len(body)}".encode() in head
        connection.data_received(b"z")
        assert b"z" not in line.http.received
        assert len(line.http.received) <= 100


async def test_what_is_sent_beyond_a_request(clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is bounded as a head is, anew for each request."""
    monkeypatch.setattr(connection_module, "MAX_HEAD_BYTES", 100)
    connection = Line(clock).open()
    for _ in range(3):
        connection.data_received(HEAD)
        connection.begin(request(is_complete=True))
        connection.data_received(bytes(100))
        connection.end()
    connection.data_received(HEAD)
    connection.begin(request(is_complete=True))
    assert connection.reason is None
    connection.data_received(bytes(101))
    assert connection.reason == "pipelining"
