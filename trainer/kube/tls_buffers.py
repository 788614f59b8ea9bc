"""How much memory asyncio takes for a TLS connection.

The buffer into which it reads is most of what a connection weighs, and asyncio has no option for its size. Tests notice
if a version of Python moves it.
"""

from __future__ import annotations

import asyncio
from asyncio.sslproto import SSLProtocol
from typing import Any

TLS_BUFFER_SIZE = 32 * 1024
SMALLEST_BUFFER = 4 * 1024


def limit_tls_buffers() -> None:
    """Have asyncio read TLS connections of this process into 32 KiB instead of 256 KiB each.

    A server keeps hundreds of them. To be called once, by what composes a process.
    """
    SSLProtocol.max_size = TLS_BUFFER_SIZE


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
