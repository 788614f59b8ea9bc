"""Reading an answer now and then, for a thousand logs at once.

A log of a hundred lines a second comes in as many packets. Whoever reads each as it comes is woken a hundred times;
whoever reads four times a second finds 25 lines each time, which the kernel has kept. It says more than the server's
own pace: when nobody reads, TCP holds the server up, and the log stays on the node's disk.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from aiohttp import ClientError, ClientPayloadError, hdrs
from multidict import CIMultiDict, CIMultiDictProxy

from trainer.kube.rest.failures import BrokenConnectionError
from trainer.kube.rest.http_answer import HEAD_LIMIT, Head, MalformedAnswerError, parse_head
from trainer.kube.rest.wire import READ_SIZE, connect

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator, Mapping

    import yarl

    from trainer.kube.clock import Clock
    from trainer.kube.rest.turns import Turns
    from trainer.kube.rest.wire import Wire

HURRY = 128
"""How many times as often a stream is read of which more arrives than one read takes.

With 16 KiB at a time and a pace of 0.5 s that is at most 4 MiB/s, so one pod that floods its log cannot keep the event
loop busy, and a reader that is an hour behind an ordinary log has caught up within seconds.
"""

_NO_HEADERS = CIMultiDictProxy[str](CIMultiDict())


class PacedAnswer:
    """An answer whose head has come, on a connection of its own."""

    __slots__ = ("_body", "_clock", "_heard_at", "_idle_timeout", "_rest", "_turns", "_wire", "headers", "status")

    def __init__(
        self, wire: Wire, head: Head, rest: bytes, *, clock: Clock, turns: Turns, idle_timeout: float | None
    ) -> None:
        self.status: int = head.status
        self.headers: CIMultiDictProxy[str] = head.headers
        self._wire = wire
        self._body = head.body()
        self._rest = rest
        self._clock = clock
        self._turns = turns
        self._idle_timeout = idle_timeout
        self._heard_at = asyncio.get_running_loop().time()

    async def read(self) -> bytes:
        """The whole body, as fast as it comes."""
        return b"".join([chunk async for chunk in self.chunks(0)])

    async def chunks(self, pace: float) -> AsyncGenerator[bytes, None]:
        """The body, in chunks between whose reads there are so many seconds; the headers are gone afterwards.

        Raises:
            aiohttp.ClientError: the connection broke, or ended early.
            TimeoutError: the server sent nothing for the idle timeout.
        """
        pause = pace
        # Streams that were opened together do not stay together.
        spread = random.random()  # noqa: S311 - not a secret
        data: bytes | memoryview | None = self._rest
        self._rest, self.headers = b"", _NO_HEADERS
        while True:
            has_come = bool(data)
            chunk = self._feed(data or b"")
            # Before anything else runs: the buffer belongs to all.
            data = None
            if chunk:
                yield chunk
                # Not kept during the pause.
                chunk = b""
            if self._body.is_complete:
                return
            if pace and has_come:
                pause = _pause_after(self._wire.received, pause, pace)
                await self._clock.sleep(pause * spread)
                spread = 1.0
            await self._turns.take()
            data = self._wire.receive()
            if data is None:
                await self._wire.readable(self._patience())
            elif data:
                self._heard_at = asyncio.get_running_loop().time()
            else:
                self._end()
                return

    def release(self) -> None:
        """Close the connection; may be called again."""
        self._wire.close()

    def _feed(self, data: bytes | memoryview) -> bytes:
        try:
            return self._body.feed(data)
        except MalformedAnswerError as error:
            raise ClientError(str(error)) from error

    def _end(self) -> None:
        try:
            self._body.end()
        except MalformedAnswerError as error:
            raise ClientPayloadError(str(error)) from error

    def _patience(self) -> float | None:
        if self._idle_timeout is None:
            return None
        return self._heard_at + self._idle_timeout - asyncio.get_running_loop().time()


def _pause_after(size: int, pause: float, pace: float) -> float:
    """Seconds until the next read, after one that took so many bytes and came so many seconds after the one before.

    A full read leaves nobody knows how much. After any other, it is until one read is filled at the speed of the last:
    while a backlog comes in, a read ends early now and then, before the server has heard that there is room again.
    """
    if size >= READ_SIZE:
        return pace / HURRY
    return min(max(pause * READ_SIZE / max(size, 1), pace / HURRY), pace)


async def open_paced(
    method: str,
    url: yarl.URL,
    headers: Mapping[str, str],
    body: bytes | None,
    *,
    context: ssl.SSLContext | None,
    server_hostname: str | None,
    clock: Clock,
    turns: Turns,
    connect_timeout: float,
    idle_timeout: float | None,
) -> PacedAnswer:
    """Send a request on a new connection and wait for the head of the answer, which the caller must release.

    Args:
        method: HTTP method.
        url: the whole URL.
        headers: sent besides Host, Connection and Content-Length.
        body: sent with the request.
        context: TLS; None for an http:// URL.
        server_hostname: name in the certificate where it differs from the URL.
        clock: measures the pauses; timeouts of the network are measured by the event loop.
        turns: in which streams are opened and read.
        connect_timeout: seconds until the connection stands.
        idle_timeout: seconds without a byte, from now on; None waits for ever.

    Raises:
        aiohttp.ClientError: no connection, or no HTTP on it.
        TimeoutError: the server is too slow.
    """
    host, port = url.host or "", url.port or 0
    wire = await connect(host, port, context, server_hostname=server_hostname, turns=turns, timeout=connect_timeout)
    try:
        await wire.send(_request(method, url, headers, body))
        head, rest = await _head(wire, idle_timeout)
        wire.trim()
        return PacedAnswer(wire, head, rest, clock=clock, turns=turns, idle_timeout=idle_timeout)
    except MalformedAnswerError as error:
        wire.close()
        # As something else than a broken connection it is not tried again.
        raise ClientError(str(error)) from error
    except OSError as error:
        wire.close()
        if isinstance(error, TimeoutError):
            raise
        raise BrokenConnectionError(str(error)) from error
    except BaseException:
        wire.close()
        raise


def _request(method: str, url: yarl.URL, headers: Mapping[str, str], body: bytes | None) -> bytes:
    lines = [f"{method} {url.raw_path_qs} HTTP/1.1", f"{hdrs.HOST}: {url.host_port_subcomponent}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body is not None:
        lines.append(f"{hdrs.CONTENT_LENGTH}: {len(body)}")
    # The connection is not used again.
    lines.append(f"{hdrs.CONNECTION}: close")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b"")


async def _head(wire: Wire, idle_timeout: float | None) -> tuple[Head, bytes]:
    received = b""
    while True:
        data = wire.receive()
        if data is None:
            await wire.readable(idle_timeout)
            continue
        if not data:
            raise BrokenConnectionError("Server disconnected")
        received += data
        if parsed := parse_head(received):
            return parsed
        if len(received) > HEAD_LIMIT:
            raise MalformedAnswerError(f"the head of the answer is longer than {HEAD_LIMIT} bytes")
