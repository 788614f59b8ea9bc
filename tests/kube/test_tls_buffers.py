"""The memory of TLS connections."""

from __future__ import annotations

import asyncio
import ssl
from asyncio.sslproto import SSLProtocol

from trainer.kube.tls_buffers import SMALLEST_BUFFER, shrink_tls_buffer


async def test_a_stream_takes_less() -> None:
    """asyncio reads no more than the smallest buffer of a connection that was shrunk."""
    loop = asyncio.get_running_loop()
    context, waiter = ssl.create_default_context(), loop.create_future()
    protocol = SSLProtocol(loop, asyncio.Protocol(), context, waiter, server_hostname="a.example")
    transport = protocol._app_transport
    assert len(protocol.get_buffer(-1)) > SMALLEST_BUFFER
    shrink_tls_buffer(transport)
    assert len(protocol.get_buffer(-1)) == SMALLEST_BUFFER
    assert transport.get_read_buffer_limits() == (0, 1)
    transport.close()
