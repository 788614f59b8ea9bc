"""The event loop of a command, which a signal ends in an orderly way."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_until_signal(command: Callable[[], Awaitable[int]]) -> int:
    """Run a command and return its exit code, or 128 + N when signal N ended it.

    SIGINT, SIGTERM and SIGHUP cancel the command, which then cleans up undisturbed by further ones. A signal that the
    parent chose to ignore (nohup, background jobs of a script) stays ignored.
    """
    return anyio.run(_run, command)


async def _run(command: Callable[[], Awaitable[int]]) -> int:
    heeded = [number for number in _STOPPING if signal.getsignal(number) is not signal.SIG_IGN]
    received: list[int] = []

    async def cancel_on_signal(signals: AsyncIterator[signal.Signals]) -> None:
        received.append(await anext(signals))
        task_group.cancel_scope.cancel()

    code = 0
    with anyio.open_signal_receiver(*heeded) as signals:
        async with anyio.create_task_group() as task_group:
            task_group.start_soon(cancel_on_signal, signals)
            code = await command()
            task_group.cancel_scope.cancel()
    return 128 + received[0] if received else code
