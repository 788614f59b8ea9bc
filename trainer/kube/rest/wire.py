"""A connection to a server that takes little memory, for answers that last for hours and of which there are many.

asyncio's TLS keeps a buffer of 256 KiB for each connection, and wakes its reader for each packet. Here the buffers are
shared: what has arrived is taken from the kernel, decrypted and handed on before anything else runs, so one pair of
buffers serves every connection of the process. Between two reads a connection keeps nothing but the state of TLS, and
nobody is woken: what arrives waits with the kernel until it is asked for.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from aiohappyeyeballs import start_connection
from aiohttp import (
    ClientConnectorCertificateError,
    ClientConnectorDNSError,
    ClientConnectorError,
    ClientConnectorSSLError,
    ConnectionTimeoutError,
    SocketTimeoutError,
)
from aiohttp.client_reqrep import ConnectionKey

from trainer.kube.rest.failures import BrokenConnectionError
from trainer.kube.rest.pool import keepalive_socket

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainer.kube.rest.turns import Turns

READ_SIZE = 16 * 1024
"""Bytes that one read takes from the kernel at most: a millisecond of work."""

_RECORD_SIZE = 19 * 1024
"""More than a TLS record takes; one that was incomplete before a read adds to what the read yields."""

_HEADER = struct.Struct("!BBxH")
"""Of a TLS record: its kind, the major version, and its length."""
_HEADER_SIZE = _HEADER.size
_FIRST_KIND, _LAST_KIND = 20, 24
_VERSION = 3
_LONGEST_RECORD = 18 * 1024

_SLICE = 2 * 1024
"""Bytes that OpenSSL is given at a time: its queue never shrinks, and there is one for each connection."""

NEXT_ADDRESS_AFTER = 0.25
"""Seconds until the next address of a host is tried besides the one before, as in aiohttp."""

_received = memoryview(bytearray(READ_SIZE + _RECORD_SIZE))
_decrypted = memoryview(bytearray(READ_SIZE + _RECORD_SIZE))


class Wire:
    """A connected socket, with or without TLS on it; not for several threads."""

    __slots__ = ("_has_ended", "_incoming", "_incomplete", "_outgoing", "_socket", "_tls", "received")

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._tls: ssl.SSLObject | None = None
        self._incomplete = b""
        """The beginning of a TLS record: OpenSSL would take 17 KiB to wait for the rest of it."""
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
        """What of it OpenSSL is to be given now; the rest is kept."""
        end = whole_records(received)
        self._incomplete = bytes(received[end:])
        return received[:end]

    def _decrypt(self, tls: ssl.SSLObject, records: memoryview) -> memoryview | None:
        size = self._read_records(tls, 0)
        for start in range(0, len(records), _SLICE):
            self._incoming.write(records[start : start + _SLICE])
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
            TimeoutError: nothing came for so long; None waits for ever.
        """
        loop, number = asyncio.get_running_loop(), self._socket.fileno()
        arrival = loop.create_future()
        loop.add_reader(number, _tell, arrival)
        try:
            async with asyncio.timeout(seconds):
                await arrival
        except TimeoutError as error:
            raise SocketTimeoutError("Timeout on reading data from socket") from error
        finally:
            loop.remove_reader(number)

    async def send(self, data: bytes) -> None:
        """Send all of it."""
        if self._tls is not None:
            self._tls.write(data)
            data = self._outgoing.read()
        await asyncio.get_running_loop().sock_sendall(self._socket, data)

    def trim(self) -> None:
        """Give back what TLS keeps for no reason; for the time after the first bytes have come.

        With those come the session tickets of TLS 1.3. OpenSSL takes 16 KiB to read them, and gives them back with the
        next write, which need not write anything.
        """
        if self._tls is not None:
            self._tls.write(b"")

    async def start_tls(self, context: ssl.SSLContext, server_hostname: str, turns: Turns) -> None:
        """Shake hands, which takes milliseconds of work.

        Raises:
            ssl.SSLError: the server is not trusted, or speaks no TLS.
            OSError: the connection broke.
        """
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_hostname)
        loop = asyncio.get_running_loop()
        while True:
            await turns.take()
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


def whole_records(received: memoryview) -> int:
    """How many bytes are whole TLS records (RFC 8446, section 5.1); all of them if it is something else."""
    position, end = 0, len(received)
    unpack = _HEADER.unpack_from
    # A line of a log is a record of its own, so there may be a hundred of them.
    while position + _HEADER_SIZE <= end:
        kind, version, length = unpack(received, position)
        if version != _VERSION or length > _LONGEST_RECORD or not _FIRST_KIND <= kind <= _LAST_KIND:
            return end
        length += position + _HEADER_SIZE
        if length > end:
            break
        position = length
    return position


def _tell(arrival: asyncio.Future[None]) -> None:
    if not arrival.done():
        arrival.set_result(None)


async def connect(
    host: str,
    port: int,
    context: ssl.SSLContext | None,
    *,
    server_hostname: str | None,
    turns: Turns,
    timeout: float,
) -> Wire:
    """A connection to an address of the host, the next one being tried when one does not answer soon (RFC 8305).

    Args:
        host: name or address.
        port: TCP port.
        context: for TLS; None for none.
        server_hostname: name in the certificate; None: the host's.
        turns: in which the handshakes of several connections go on.
        timeout: seconds for all addresses together, TLS included.

    Raises:
        aiohttp.ClientError: as aiohttp raises them.
        OSError: the connection broke while TLS was set up.
    """
    key = ConnectionKey(host, port, context is not None, context or True, None, None, None)
    wire: Wire | None = None
    try:
        async with asyncio.timeout(timeout):
            wire = await _connected(key, host, port)
            if context is not None:
                await wire.start_tls(context, server_hostname or host, turns)
            return wire
    except BaseException as error:
        if wire is not None:
            wire.close()
        if isinstance(error, ssl.SSLCertVerificationError):
            raise ClientConnectorCertificateError(key, error) from error
        if isinstance(error, ssl.SSLError):
            raise ClientConnectorSSLError(key, error) from error
        if isinstance(error, TimeoutError):
            raise ConnectionTimeoutError(f"Connection timeout to host {host}:{port}") from error
        raise


async def _connected(key: ConnectionKey, host: str, port: int) -> Wire:
    loop = asyncio.get_running_loop()
    try:
        addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ClientConnectorDNSError(key, error) from error
    try:
        connected = await start_connection(
            addresses,
            happy_eyeballs_delay=NEXT_ADDRESS_AFTER,
            interleave=1,
            loop=loop,
            socket_factory=keepalive_socket,
        )
    except OSError as error:
        raise ClientConnectorError(key, error) from error
    return Wire(connected)
