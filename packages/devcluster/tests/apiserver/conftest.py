"""A running server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from packages.devcluster.tests.apiserver.http_client import Api, api_for
from trainer_devcluster.apiserver.server import ServerOptions, serve


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    """A client for a fresh server.

    The server lives in a task of its own: pytest-asyncio may leave a fixture in another task than it entered it in.
    """
    ready: asyncio.Future[Api] = asyncio.get_running_loop().create_future()
    stop = asyncio.Event()

    async def run() -> None:
        try:
            async with serve(ServerOptions(tmp_path, history=50)) as server, api_for(server) as client:
                ready.set_result(client)
                await stop.wait()
        except Exception as error:
            if ready.done():
                raise
            ready.set_exception(error)

    task = asyncio.create_task(run())
    yield await ready
    stop.set()
    await task
