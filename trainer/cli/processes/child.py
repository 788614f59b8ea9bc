"""A process that lives as long as a block of code, and never longer than the command itself."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio.abc import Process
from anyio.to_thread import run_sync

from trainer.cli.processes.log_file import LogFile
from trainer.cli.processes.parent_death import ending_with_parent
from trainer.cli.processes.process import describe_exit

_GRACE_SECONDS = 15.0


@asynccontextmanager
async def child_process(
    name: str, command: list[str], log: Path, is_ready: Callable[[], Awaitable[bool]]
) -> AsyncIterator[None]:
    """Run the body while the command runs, from the moment that it is ready.

    It gets a session of its own: Ctrl-C reaches only this process, which then stops its children in order.
    """
    file = await run_sync(log.open, "wb")
    with file:
        process = await anyio.open_process(
            ending_with_parent(command),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    log_file = LogFile(log)

    async def wait_for_end() -> str:
        return describe_exit(await process.wait())

    async def guard() -> None:
        await log_file.fail(name, await wait_for_end())

    try:
        await log_file.wait_until_ready(name, is_ready, wait_for_end)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(guard)
            yield
            tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await _stop(process)


async def _stop(process: Process) -> None:
    if process.returncode is None:
        process.terminate()
        with anyio.move_on_after(_GRACE_SECONDS):
            await process.wait()
            return
        process.kill()
    await process.wait()
