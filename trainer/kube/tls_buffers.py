"""How much memory asyncio takes for a TLS connection."""

from __future__ import annotations

from asyncio.sslproto import SSLProtocol

TLS_BUFFER_SIZE = 32 * 1024


def limit_tls_buffers() -> None:
    """Have asyncio read TLS connections of this process into 32 KiB instead of 256 KiB each.

    The buffer is most of what an idle connection weighs, and a server keeps hundreds of them. asyncio has no option for
    its size; a test notices if a version of Python moves it. To be called once, by what composes a process.
    """
    SSLProtocol.max_size = TLS_BUFFER_SIZE
