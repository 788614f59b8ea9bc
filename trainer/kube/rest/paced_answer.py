"""Reading an answer now and then, for a thousand logs at once.

A log of a hundred lines a second arrives in as many packets. A reader that is woken by each does a hundred times the
work of one that reads twice a second and finds what the kernel has kept. Back-pressure follows from it: while nobody
reads, TCP holds up the server, and the log stays on the node's disk.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from aiohttp import ClientError, ClientPayloadError, hdrs
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http import HttpProcessingError, HttpResponseParser
from multidict import CIMultiDict, CIMultiDictProxy

from trainer.kube.rest.failures import BrokenConnectionError
from trainer.kube.rest.lean_connection import READ_SIZE, open_connection

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator, Mapping

    import yarl
    from aiohttp import StreamReader

    from trainer.kube.clock import Clock
    from trainer.kube.rest.fair_scheduler import FairScheduler
    from trainer.kube.rest.lean_connection import LeanConnection

MAX_SPEED_UP = 128
"""How many times as often a stream is read of which more arrives than one read takes.

With 16 KiB at a time and a pace of 0.5 s that is at most 4 MiB/s, so one pod that floods its log cannot keep the event
loop busy, and a reader that is an hour behind an ordinary log has caught up within seconds.
"""

_LONGEST_PROBLEM = 200
"""Characters of what the parser says, which quotes the server: thousands of bytes of a log, for example."""

_NO_HEADERS = CIMultiDictProxy[str](CIMultiDict())


class _NeverPaused(BaseProtocol):
    """What aiohttp's parser pauses when a buffer is full; here the buffer is emptied after each read."""

    __slots__ = ()

    def pause_reading(self) -> None: ...

    def resume_reading(self, resume_parser: bool = True) -> None: ...


class PacedAnswer:
    """An answer on a connection of its own, whose head has come when `open_paced` returns it."""

    def __init__(
        self, connection: LeanConnection, *, clock: Clock, scheduler: FairScheduler, idle_timeout: float | None
    ) -> None:
        loop = asyncio.get_running_loop()
        self.status = 0
        self.headers = _NO_HEADERS
        self._body: StreamReader | None = None
        self._connection = connection
        self._clock = clock
        self._scheduler = scheduler
        self._idle_timeout = idle_timeout
        self._heard_at = loop.time()
        self._parser = HttpResponseParser(
            _NeverPaused(loop), loop, READ_SIZE, read_until_eof=True, auto_decompress=False
        )

    async def read_head(self) -> None:
        """Wait for status and headers."""
        while self._body is None:
            data = self._connection.receive()
            if data is None:
                await self._connection.readable(self._idle_timeout)
            elif not data:
                raise BrokenConnectionError("Server disconnected")
            else:
                self._feed(data)
        self._connection.trim()

    async def read(self) -> bytes:
        """The whole body, as fast as it comes."""
        return b"".join([chunk async for chunk in self.chunks(0)])

    async def chunks(self, pace: float) -> AsyncGenerator[bytes, None]:
        """The body, in chunks between whose reads there are so many seconds; the headers are gone afterwards.

        Raises:
            aiohttp.ClientError: the connection broke, or ended early.
            TimeoutError: the server sent nothing for the idle timeout.
        """
        body = self._body
        assert body is not None
        self.headers = _NO_HEADERS
        pause = pace
        # Streams that were opened together do not stay together.
        spread = random.random()  # noqa: S311 - not a secret
        has_come = False
        while True:
            if chunk := body.read_nowait():
                has_come = True
                yield chunk
                # Not kept during the pause.
                del chunk
            if body.is_eof():
                return
            if pace and has_come:
                pause = _pause_after(self._connection.received, pause, pace)
                await self._clock.sleep(pause * spread)
                spread = 1.0
            await self._scheduler.next_turn()
            has_come = await self._receive()

    async def _receive(self) -> bool:
        """Feed the parser with what has arrived; False if nothing had, and it has been waited for."""
        data = self._connection.receive()
        if data is None:
            await self._connection.readable(self._time_left())
            return False
        self._heard_at = asyncio.get_running_loop().time()
        if data:
            self._feed(data)
        else:
            self._end()
        return True

    def release(self) -> None:
        """Close the connection; may be called again."""
        self._connection.close()

    def _feed(self, data: memoryview) -> None:
        """Parse it before anything else runs: the buffer belongs to all."""
        try:
            messages, _, _ = self._parser.feed_data(bytes(data))
        except HttpProcessingError as error:
            # As something else than a broken connection it is not tried again.
            problem = " ".join(error.message.split())[:_LONGEST_PROBLEM]
            raise ClientError(f"the answer is not HTTP/1.1 as it should be: {problem}") from error
        for message, body in messages:
            # Interim answers (1xx) precede the one that counts.
            if self._body is None and message.code >= 200:
                self.status, self.headers, self._body = message.code, message.headers, body

    def _end(self) -> None:
        try:
            self._parser.feed_eof()
        except HttpProcessingError as error:
            raise ClientPayloadError("the connection ended before the answer did") from error

    def _time_left(self) -> float | None:
        if self._idle_timeout is None:
            return None
        return self._heard_at + self._idle_timeout - asyncio.get_running_loop().time()


def _pause_after(size: int, pause: float, pace: float) -> float:
    """Seconds until the next read, after one that took so many bytes and came so many seconds after the one before.

    A full read may have left any number of bytes behind. After any other, it is until one read is filled at the speed
    of the last: while a backlog comes in, a read ends early now and then, before the server has heard that there is
    room again.
    """
    if size >= READ_SIZE:
        return pace / MAX_SPEED_UP
    return min(max(pause * READ_SIZE / max(size, 1), pace / MAX_SPEED_UP), pace)


async def open_paced(
    method: str,
    url: yarl.URL,
    headers: Mapping[str, str],
    body: bytes | None,
    *,
    context: ssl.SSLContext | None,
    server_hostname: str | None,
    clock: Clock,
    scheduler: FairScheduler,
    connect_timeout: float,
    idle_timeout: float | None,
) -> PacedAnswer:
    """Send a request on a new connection and wait for the head of the answer, which the caller must release.

    `clock` measures the pauses between reads, the event loop the timeouts. `headers` are sent besides Host, Connection
    and Content-Length.

    Raises:
        aiohttp.ClientError: no connection, or no HTTP on it.
        TimeoutError: the server is too slow.
    """
    try:
        connection = await open_connection(
            url.host or "",
            url.port or 0,
            context,
            server_hostname=server_hostname,
            scheduler=scheduler,
            timeout=connect_timeout,
        )
        answer = PacedAnswer(connection, clock=clock, scheduler=scheduler, idle_timeout=idle_timeout)
        try:
            await connection.send(_request(method, url, headers, body))
            await answer.read_head()
        except BaseException:
            answer.release()
            raise
    except OSError as error:
        if isinstance(error, TimeoutError):
            raise
        raise BrokenConnectionError(str(error)) from error
    return answer


def _request(method: str, url: yarl.URL, headers: Mapping[str, str], body: bytes | None) -> bytes:
    lines = [f"{method} {url.raw_path_qs} HTTP/1.1", f"{hdrs.HOST}: {url.host_port_subcomponent}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body is not None:
        lines.append(f"{hdrs.CONTENT_LENGTH}: {len(body)}")
    # The connection is not used again.
    lines.append(f"{hdrs.CONNECTION}: close")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b"")
