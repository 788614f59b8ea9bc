"""Streams of logs to somebody who does not read them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from aiohttp.test_utils import make_mocked_request

from packages.dashboard.tests.conftest import UserClient, node_pod
from trainer.kube.cache.cache import Cache
from trainer_dashboard.access.parties import Parties
from trainer_dashboard.access.viewer import Owner
from trainer_dashboard.live.event_stream import STALLED
from trainer_dashboard.live.log_stream import LAST_LINES, WAITING_BYTES, LogSource, LogStreams
from trainer_dashboard.live.namespace_informers import NamespaceInformers
from trainer_kube_testing import FakeLog, ManualClock, settle

POD = "demo-node-0-0-abcde"


class Reader:
    """The connection of a page, which takes nothing while it is `away`."""

    def __init__(self) -> None:
        self.written = bytearray()
        self.length = self.output_size = 0
        self.has_ended = anyio.Event()
        self._back = anyio.Event()
        self._back.set()

    def leave(self) -> None:
        self._back = anyio.Event()

    def come_back(self) -> None:
        self._back.set()

    def events(self, name: str) -> list[Any]:
        """The contents of all events of this name that were written."""
        blocks = [
            block.split("\ndata: ", 1) for block in bytes(self.written).decode().split("\n\n") if "data: " in block
        ]
        return [json.loads(data) for head, data in blocks if head == f"event: {name}"]

    async def write(self, chunk: bytes) -> None:
        """As of aiohttp's writer."""
        await self._back.wait()
        self.written += chunk

    async def write_eof(self, chunk: bytes = b"") -> None:
        """Likewise."""
        await self.write(chunk)

    async def write_headers(self, *_: object) -> None:
        """Likewise."""

    def send_headers(self) -> None:
        """Likewise."""

    def enable_chunking(self) -> None:
        """Likewise."""


@asynccontextmanager
async def following(reader: Reader, clock: ManualClock) -> AsyncIterator[FakeLog]:
    """The log of a container that a page follows, once it has its first line."""
    client = UserClient(node_pod("demo"), clock=clock)
    log = client.log(POD, "default", "node")
    log.write(b"first\n")
    cache = Cache(client, clock=clock)
    streams = LogStreams(NamespaceInformers(cache), clock)
    request: Any = make_mocked_request("GET", "/", writer=reader)

    async def stream() -> None:
        with Parties().of("").streaming(lambda: None, logs=1) as slot:
            assert slot is not None
            await streams.stream(request, "default", (LogSource(POD, "node"),), Owner(client), slot)
        reader.has_ended.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cache.run)
        tasks.start_soon(stream)
        while not reader.events("lines"):
            await clock.advance(0.5)
        yield log
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("length", "count", "most"),
    [
        pytest.param(4000, 1000, WAITING_BYTES // 4000, id="bytes"),
        pytest.param(10, 5000, LAST_LINES, id="lines"),
    ],
)
async def test_what_waits_for_a_slow_reader(length: int, count: int, most: int) -> None:
    """Who reads slowly gets the newest lines, in bounded number and size, and how many were dropped before them."""
    clock, reader = ManualClock(), Reader()
    async with following(reader, clock) as log:
        reader.leave()
        log.write(b"second\n")
        await clock.advance(1)
        for number in range(count):
            log.write(f"{number:05} {'x' * (length - 6)}\n".encode())
            if not number % 100:
                await clock.advance(0.2)
        await clock.advance(0.2)
        reader.come_back()
        while not reader.events("lines")[-1]["lines"][-1][1].startswith(f"{count - 1:05}"):
            await clock.advance(0.2)
    events = reader.events("lines")[2:]
    texts = [text for event in events for _, text in event["lines"]]
    assert sum(event["dropped"] for event in events) + len(texts) == count
    assert 0.9 * most < len(texts) <= most
    assert [int(text[:5]) for text in texts] == list(range(count - len(texts), count))


async def test_reader_that_never_comes_back() -> None:
    """A stream of which nothing is read ends, and with it the reading of the log."""
    clock, reader = ManualClock(), Reader()
    async with following(reader, clock) as log:
        reader.leave()
        log.write(b"second\n")
        await clock.advance(1)
        await clock.advance(STALLED - 2)
        assert not reader.has_ended.is_set()
        await clock.advance(2)
        await settle()
        assert reader.has_ended.is_set()
        reader.come_back()
        await settle()
    assert len(reader.events("lines")) == 1


async def test_bar() -> None:
    """A line that is written over is shown by the last state that is whole, until it has ended."""
    clock, reader = ManualClock(), Reader()
    async with following(reader, clock) as log:
        log.write(b"10%\r 20%\r 30%")
        while not reader.events("state"):
            await clock.advance(0.5)
        log.write(b"\r 40%")
        while len(reader.events("state")) < 2:
            await clock.advance(0.5)
        log.write(b"\r100%\n")
        while len(reader.events("lines")) < 2:
            await clock.advance(0.5)
        await clock.advance(5)
    assert [(event["source"], event["line"][1].strip()) for event in reader.events("state")] == [(0, "20%"), (0, "30%")]
    assert [text for _, text in reader.events("lines")[1]["lines"]] == ["100%"]
