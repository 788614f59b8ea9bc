"""Listening: HTTPS on the loopback interface, with limits on what one client can hold for how long.

Limits are those of the real server where it has them: a connection that sends no whole request for 90 seconds is
closed, a body must have arrived after 60 seconds, and headers have at most 64 KiB a line. A client that learns that
its body is too large may go on sending for five seconds, which is read and dropped so that it gets to see the answer.
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from ssl import SSLContext

import anyio
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from trainer_devcluster.apiserver.wire.body import MAX_BODY_BYTES

HOST = "127.0.0.1"
IDLE_SECONDS = 90.0
"""After which a connection is closed on which no whole header has arrived since the last answer."""
LINGER_SECONDS = 5.0
"""Seconds in which the rest of a body is read after the answer."""
HANDSHAKE_SECONDS = 10.0
CLOSE_SECONDS = 2.0
"""Seconds that a closed connection waits for the client's close."""
_HEADER_BYTES = 64 * 1024
_BACKLOG = 1024
_SHUTDOWN_SECONDS = 1.0
_DESCRIPTORS = 65_536
"""Wanted open files; each connection and each followed log is one."""
_CONNECTION_SHARE = 0.75
"""Of the open files, for connections; the rest is for files and processes of pods."""


@asynccontextmanager
async def listening(
    handle: Callable[[web.Request], Awaitable[web.StreamResponse]], port: int, context: SSLContext
) -> AsyncIterator[int]:
    """Answer requests until the context closes; gives the port.

    Args:
        handle: answers any request, and never raises.
        port: on the loopback interface; 0 for any free one.
        context: of the server's certificate.

    Raises:
        OSError: the port is taken.
    """
    runner = _runner(handle)
    await runner.setup()
    try:
        server = await _serve(runner, port, context)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
    finally:
        with anyio.CancelScope(shield=True):
            await runner.cleanup()


async def _serve(runner: web.AppRunner, port: int, context: SSLContext) -> asyncio.Server:
    accept = runner.server
    assert accept is not None
    limit = int(raise_descriptor_limit() * _CONNECTION_SHARE)

    def protocol() -> asyncio.BaseProtocol:
        return accept() if len(accept.connections) < limit else _Refusal()

    loop = asyncio.get_running_loop()
    try:
        return await loop.create_server(
            protocol,
            HOST,
            port,
            ssl=context,
            backlog=_BACKLOG,
            ssl_handshake_timeout=HANDSHAKE_SECONDS,
            ssl_shutdown_timeout=CLOSE_SECONDS,
        )
    except OSError as error:
        problem = os.strerror(error.errno or 0)
        message = f"cannot listen on port {port} of {HOST} ({problem}): choose another one, or 0 for any free one"
        raise OSError(error.errno, message) from error


def _runner(handle: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> web.AppRunner:
    application = web.Application(client_max_size=MAX_BODY_BYTES)
    application.router.add_route("*", "/{path:.*}", handle)
    logger = logging.getLogger(__name__)
    logger.addFilter(_is_ours)
    return web.AppRunner(
        application,
        handle_signals=False,
        handler_cancellation=True,
        access_log=None,
        logger=logger,
        keepalive_timeout=IDLE_SECONDS,
        lingering_time=LINGER_SECONDS,
        shutdown_timeout=_SHUTDOWN_SECONDS,
        max_line_size=_HEADER_BYTES,
        max_field_size=_HEADER_BYTES,
        # Like the real server, which reads bodies as they are; nobody gets to unpack a gigabyte here.
        auto_decompress=False,
    )


def raise_descriptor_limit() -> int:
    """Open as many files as the system lets us, up to what a busy cluster needs; returns how many those are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(_DESCRIPTORS, hard)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return _DESCRIPTORS if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


def _is_ours(record: logging.LogRecord) -> bool:
    """Whether a failure is one of the server; malformed requests have been answered."""
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


class _Refusal(asyncio.Protocol):
    """Takes no request: there are too many connections."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()
