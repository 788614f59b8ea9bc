"""Signals: the event loop of a program that SIGTERM, SIGINT or SIGHUP ends in an orderly way."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Awaitable, Callable

import anyio

from trainer.kube.logger import get_logger

log = get_logger(__name__)

_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_until_signal(command: Callable[[], Awaitable[int]], *, second_kills: bool = False) -> int:
    """Run a command on an event loop of its own; its exit code, or 128 + N when signal N ended it.

    SIGINT, SIGTERM and SIGHUP cancel the command, which then cleans up. A signal that the parent chose to ignore (as by
    nohup, or for background jobs of a script) stays ignored. Call it in the main thread.

    Args:
        command: what to run. If it fails, its exceptions arrive in an exception group.
        second_kills: whether a second signal ends the process at that moment, for a command whose end may take long
            and that leaves nothing behind which others do not clear up. Default: it is ignored.
    """
    return anyio.run(_run, command, second_kills)


async def _run(command: Callable[[], Awaitable[int]], second_kills: bool) -> int:
    heeded = [number for number in _STOPPING if signal.getsignal(number) is not signal.SIG_IGN]
    received: list[int] = []

    async def cancel_on_signal(signals: AsyncIterator[signal.Signals]) -> None:
        received.append(await anext(signals))
        log.info("stopping", signal=signal.Signals(received[0]).name)
        if second_kills:
            # The kernel's part: it works even where the event loop stands still.
            for number in heeded:
                signal.signal(number, signal.SIG_DFL)
        task_group.cancel_scope.cancel()

    code = 0
    with anyio.open_signal_receiver(*heeded) as signals:
        async with anyio.create_task_group() as task_group:
            task_group.start_soon(cancel_on_signal, signals)
            code = await command()
            task_group.cancel_scope.cancel()
    return 128 + received[0] if received else code
