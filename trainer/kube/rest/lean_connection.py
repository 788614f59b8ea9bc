"""A connection that takes little memory, for answers that last for hours and of which there are a thousand.

aiohttp is what other requests use. For logs it was measured and takes too much: asyncio's TLS keeps a read buffer and a
queue for each connection. 1,000 followed logs took 105 MB with read buffers of 8 KiB and 77 to 82 MB with 4 KiB, with
back-pressure (reading paused between two reads), against 50 MB here and the 63 MB that KEP-2779 allows.

Here Python's TLS (`ssl.SSLObject`) works on buffers that all connections share: what has arrived is taken from the
kernel, decrypted and handed on before anything else runs. Between two reads a connection keeps only the state of TLS,
and what arrives waits in the kernel. HTTP is aiohttp's, see `rest.paced_answer`.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import aiohttp
from aiohappyeyeballs import start_connection

from trainer.kube.rest.failures import BrokenConnectionError, ConnectError

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainer.kube.rest.fair_scheduler import FairScheduler

READ_SIZE = 16 * 1024
"""Bytes that one read takes from the kernel at most: a millisecond of work."""

_LONGEST_RECORD = 18 * 1024
"""Bytes of a TLS record at most, without its header. An incomplete one adds to what the next read yields."""

_SLICE = 2 * 1024
"""Bytes that OpenSSL gets at a time: its queue never shrinks, and each connection has one."""

NEXT_ADDRESS_AFTER = 0.25
"""Seconds until the next address of a host is tried besides the one before, as in aiohttp."""

_KEEPALIVE = ((socket.TCP_KEEPIDLE, 30), (socket.TCP_KEEPINTVL, 15), (socket.TCP_KEEPCNT, 4))
"""HTTP/1.1 has no ping: this finds a dead peer of an idle watch within 90 s."""

_HEADER = struct.Struct("!BxxH")
"""The header of a TLS record (RFC 8446, section 5.1): its type and, after its version, its length."""
_KINDS = range(20, 25)

_BUFFER_SIZE = READ_SIZE + _HEADER.size + _LONGEST_RECORD
_received = memoryview(bytearray(_BUFFER_SIZE))
_decrypted = memoryview(bytearray(_BUFFER_SIZE))


class LeanConnection:
    """A connected socket, with or without TLS on it; not for several threads."""

    __slots__ = ("_has_ended", "_incoming", "_incomplete", "_outgoing", "_socket", "_tls", "received")

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._tls: ssl.SSLObject | None = None
        self._incomplete = b""
        """The beginning of a TLS record: OpenSSL would take 17 KiB to wait for the rest, 23 MB for 1,000 busy logs."""
        self._has_ended = False
        self.received = 0
        """Bytes that the last read took from the kernel; `READ_SIZE` if the kernel may hold more."""

    def receive(self) -> memoryview | None:
        """What has arrived; empty at the end of the connection, None if nothing has. Valid until the next await.

        Raises:
            OSError: the connection broke, or TLS failed.
        """
        if self._has_ended:
            return _decrypted[:0]
        start = len(self._incomplete)
        try:
            size = self._socket.recv_into(_received[start:], READ_SIZE)
        except (BlockingIOError, InterruptedError):
            return None
        self.received = size
        if self._tls is None:
            return _received[:size]
        if not size:
            self._incoming.write_eof()
        _received[:start] = self._incomplete
        return self._decrypt(self._tls, self._whole_records(_received[: start + size]))

    def _whole_records(self, received: memoryview) -> memoryview:
        """The part that OpenSSL gets now; the rest is kept."""
        end = _end_of_last_record(received)
        self._incomplete = bytes(received[end:])
        return received[:end]

    def _decrypt(self, tls: ssl.SSLObject, received: memoryview) -> memoryview | None:
        size = self._read_records(tls, 0)
        for start in range(0, len(received), _SLICE):
            self._incoming.write(received[start : start + _SLICE])
            size = self._read_records(tls, size)
        self._flush_now()
        return _decrypted[:size] if size or self._has_ended else None

    def _read_records(self, tls: ssl.SSLObject, size: int) -> int:
        """Decrypt what is complete behind the bytes that are decrypted; return how many there are now."""
        # With a buffer, of any kind, it returns a number.
        read = cast("Callable[[int, memoryview], int]", tls.read)
        incoming = self._incoming
        while (incoming.pending or incoming.eof) and not self._has_ended:
            try:
                count = read(READ_SIZE, _decrypted[size:])
            except ssl.SSLWantReadError:
                break
            except ssl.SSLEOFError as error:
                raise BrokenConnectionError("the connection ended before TLS did") from error
            if not count:
                self._has_ended = True
            size += count
        return size

    def _flush_now(self) -> None:
        """Send TLS's own messages, such as a new key; a few bytes, for which the kernel has room."""
        if not self._outgoing.pending:
            return
        message = self._outgoing.read()
        sent = 0
        with suppress(BlockingIOError):
            sent = self._socket.send(message)
        if sent < len(message):
            raise BrokenConnectionError("the server reads nothing")

    async def readable(self, seconds: float | None) -> None:
        """Wait until there is something to receive.

        Raises:
            TimeoutError: nothing came for so long; None waits forever.
        """
        loop, number = asyncio.get_running_loop(), self._socket.fileno()
        arrival = loop.create_future()
        loop.add_reader(number, _set_arrived, arrival)
        try:
            async with asyncio.timeout(seconds):
                await arrival
        except TimeoutError as error:
            raise aiohttp.SocketTimeoutError("Timeout on reading data from socket") from error
        finally:
            loop.remove_reader(number)

    async def send(self, data: bytes) -> None:
        """Send all of it."""
        if self._tls is not None:
            self._tls.write(data)
            data = self._outgoing.read()
        await asyncio.get_running_loop().sock_sendall(self._socket, data)

    def trim(self) -> None:
        """Free what TLS keeps for no reason; for the time after the first bytes have come.

        With those come the session tickets of TLS 1.3. OpenSSL takes 16 KiB to read them, and frees them with the next
        write, even an empty one.
        """
        if self._tls is not None:
            self._tls.write(b"")

    async def start_tls(self, context: ssl.SSLContext, server_hostname: str, scheduler: FairScheduler) -> None:
        """Perform the TLS handshake, which takes milliseconds of work.

        Raises:
            ssl.SSLError: the server is not trusted, or speaks no TLS.
            OSError: the connection broke.
        """
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_hostname)
        loop = asyncio.get_running_loop()
        while True:
            await scheduler.next_turn()
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                await loop.sock_sendall(self._socket, self._outgoing.read())
                received = await loop.sock_recv(self._socket, _SLICE)
                if not received:
                    raise ConnectionResetError("the server closed the connection during the TLS handshake") from None
                self._incoming.write(self._whole_records(memoryview(self._incomplete + received)))
            finally:
                # What ends the handshake, or explains a refusal to the server.
                with suppress(OSError):
                    self._flush_now()
        self._tls = tls

    def close(self) -> None:
        """Close the connection at once; may be called again."""
        self._socket.close()


def _end_of_last_record(received: memoryview) -> int:
    """How many bytes are whole TLS records; all of them if OpenSSL has to refuse them, as they are something else."""
    position = 0
    # A line of a log is a record of its own, so there may be a hundred of them.
    while position + _HEADER.size <= len(received):
        kind, length = _HEADER.unpack_from(received, position)
        if kind not in _KINDS or length > _LONGEST_RECORD:
            return len(received)
        following = position + _HEADER.size + length
        if following > len(received):
            break
        position = following
    return position


def _set_arrived(arrival: asyncio.Future[None]) -> None:
    if not arrival.done():
        arrival.set_result(None)


async def open_connection(
    host: str,
    port: int,
    context: ssl.SSLContext | None,
    *,
    server_hostname: str | None,
    scheduler: FairScheduler,
    timeout: float,
) -> LeanConnection:
    """A connection to an address of the host, the next one being tried when one does not answer soon (RFC 8305).

    `timeout` is for all addresses together, TLS included.

    Raises:
        ConnectError: there is no connection.
        aiohttp.ConnectionTimeoutError: not in time.
    """
    connection: LeanConnection | None = None
    try:
        async with asyncio.timeout(timeout):
            connection = LeanConnection(await _connected_socket(host, port))
            if context is not None:
                await connection.start_tls(context, server_hostname or host, scheduler)
            return connection
    except BaseException as error:
        if connection is not None:
            connection.close()
        if isinstance(error, TimeoutError):
            raise aiohttp.ConnectionTimeoutError(f"Connection timeout to host {host}:{port}") from error
        if isinstance(error, OSError) and (connection is None or isinstance(error, ssl.SSLError)):
            raise ConnectError(host, port, error) from error
        raise


async def _connected_socket(host: str, port: int) -> socket.socket:
    loop = asyncio.get_running_loop()
    return await start_connection(
        await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM),
        happy_eyeballs_delay=NEXT_ADDRESS_AFTER,
        interleave=1,
        loop=loop,
        socket_factory=keepalive_socket,
    )


def keepalive_socket(address: tuple[Any, ...]) -> socket.socket:
    """A socket for this result of `getaddrinfo` that finds out when its peer is dead."""
    family, kind, protocol, *_ = address
    sock = socket.socket(family, kind, protocol)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE:
        sock.setsockopt(socket.IPPROTO_TCP, option, value)
    return sock
