"""How much memory a process that runs for long keeps beside what it uses.

The buffer into which asyncio reads is most of what a TLS connection weighs, and asyncio has no option for its size.
Tests notice if a version of Python moves it.
"""

from __future__ import annotations

import asyncio
from asyncio.sslproto import SSLProtocol
from typing import Any

TLS_BUFFER_SIZE = 32 * 1024
SMALLEST_BUFFER = 4 * 1024
_M_ARENA_MAX = -8
"""Of malloc.h."""


def limit_memory() -> None:
    """Have this process keep little memory that it does not use; to be called once, before the first thread starts.

    Logging as JSON starts one, so that this comes before `configure_logging`: a heap that a thread has stays.

    * asyncio reads TLS connections, of which a server keeps hundreds, into 32 KiB instead of 256 KiB each.
    * glibc gives all threads memory from one heap. It would have up to eight for each processor, and what is free in
      one serves no thread of another. Threads of Python take turns, so that they seldom wait for a heap.
    """
    import ctypes  # noqa: PLC0415 - not every client needs it

    SSLProtocol.max_size = TLS_BUFFER_SIZE
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):  # musl and macOS have none
        libc.mallopt(_M_ARENA_MAX, 1)


def shrink_tls_buffer(transport: asyncio.Transport) -> None:
    """Have asyncio read a connection into 4 KiB, and no more of it while its reading is paused; without TLS, nothing.

    For clients with a thousand connections. Large transfers take twice the time of the processor this way.
    """
    protocol = getattr(transport, "_ssl_protocol", None)
    if not isinstance(protocol, SSLProtocol):
        return
    connection: Any = protocol
    connection.max_size = SMALLEST_BUFFER
    connection._ssl_buffer = bytearray(SMALLEST_BUFFER)  # noqa: SLF001 - there is no option
    connection._ssl_buffer_view = memoryview(connection._ssl_buffer)  # noqa: SLF001 - there is no option
    # While reading is paused nothing is decrypted, but 512 KiB would be read.
    connection._set_read_buffer_limits(high=1, low=0)  # noqa: SLF001 - there is no type for it
