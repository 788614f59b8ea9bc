"""Running a library's main coroutine next to a trial."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import anyio


@asynccontextmanager
async def running(main: Coroutine[Any, Any, None], stop: Callable[[], None] | None = None) -> AsyncIterator[None]:
    """Run it until the body ends; if it fails, so does the body.

    Args:
        main: the coroutine.
        stop: asks it to end. Default: it is cancelled.
    """

    async def run() -> None:
        await main

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        yield
        (stop or tasks.cancel_scope.cancel)()
