"""`python -m benchmarks.server`: prints its URL, then serves until standard input ends."""

from __future__ import annotations

import asyncio
import sys

from aiohttp import web

from benchmarks.server.http import Server


async def serve() -> None:
    """Serve on a free port of the loopback interface."""
    runner = web.AppRunner(Server().app(), access_log=None, handler_cancellation=True, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    sys.stdout.write(f"http://{host}:{port}\n")
    sys.stdout.flush()
    # The parent holds the other end: whatever ends it ends this process.
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


asyncio.run(serve())
