"""Lets pods with a network of their own reach the API server, which listens on the network of the machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio
import structlog
from anyio.abc import SocketListener

if TYPE_CHECKING:
    import socket

    from anyio.abc import SocketStream

log = structlog.get_logger(__name__)

_CONNECT_TIMEOUT = 10.0
"""Seconds; the API server is on the same machine, so this is only for one that hangs."""


@dataclass(frozen=True, slots=True)
class ApiAddress:
    """Where an API server listens."""

    host: str
    port: int

    @classmethod
    def of(cls, url: str) -> ApiAddress:
        """The address in a URL such as `https://127.0.0.1:6443`."""
        parts = urlsplit(url)
        return cls(parts.hostname or "", parts.port or 443)


async def serve_pods(listener: socket.socket, server: ApiAddress) -> None:
    """Pass on the bytes of all connections until cancelled; TLS is between pod and API server.

    Args:
        listener: a listening socket in the network of the pods, which is closed at the end.
        server: where the kubelet reaches the API server.
    """

    async def handle(pod: SocketStream) -> None:
        async with pod:
            try:
                with anyio.fail_after(_CONNECT_TIMEOUT):
                    upstream = await anyio.connect_tcp(server.host, server.port)
                async with upstream, anyio.create_task_group() as tasks:
                    tasks.start_soon(_copy, pod, upstream)
                    tasks.start_soon(_copy, upstream, pod)
            except (OSError, anyio.BrokenResourceError) as error:
                log.debug("connection of a pod to the API server failed", error=str(error))

    async with await SocketListener.from_socket(listener) as connections:
        await connections.serve(handle)


async def _copy(source: SocketStream, target: SocketStream) -> None:
    """Pass on what one side says, its end included; the other side may go on."""
    try:
        async for chunk in source:
            await target.send(chunk)
        await target.send_eof()
    except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        # One side has gone away; so must the other.
        await source.aclose()
        await target.aclose()
