"""The memory of TLS connections."""

from __future__ import annotations

import asyncio
import ssl
import tracemalloc
from asyncio.sslproto import SSLProtocol
from typing import TYPE_CHECKING

from trainer.kube.tls_buffers import SMALLEST_BUFFER, TLS_BUFFER_SIZE, limit_tls_buffers, shrink_tls_buffer

if TYPE_CHECKING:
    import pytest


def allocated_by_a_connection() -> int:
    """Bytes at the peak, of asyncio's protocol of one TLS connection."""
    loop = asyncio.get_running_loop()
    context = ssl.create_default_context()
    tracemalloc.start()
    try:
        protocol = SSLProtocol(
            loop, asyncio.Protocol(), context, waiter=loop.create_future(), server_hostname="a.example"
        )
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    protocol._app_transport.close()
    return size


async def test_a_connection_takes_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """asyncio's own buffer is far larger, else this setting has had its day; and the setting is the one it reads."""
    monkeypatch.setattr(SSLProtocol, "max_size", 256 * 1024)
    assert allocated_by_a_connection() > 256 * 1024
    limit_tls_buffers()
    assert allocated_by_a_connection() < TLS_BUFFER_SIZE + 16 * 1024


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
