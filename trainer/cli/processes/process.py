"""The end of processes that outlive the command that started them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import anyio

from trainer.cli.processes.supervisor import ProcessIdentity


@contextmanager
def _pidfd(process: ProcessIdentity) -> Iterator[int | None]:
    """A file descriptor that can only mean this process; None when it has ended."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        yield None
        return
    try:
        yield descriptor if process.is_running() else None
    finally:
        os.close(descriptor)


async def stop_process(process: ProcessIdentity, *, grace_seconds: float) -> bool:
    """Send SIGTERM, and SIGKILL after the grace time; returns whether SIGKILL was not needed."""
    with _pidfd(process) as descriptor:
        if descriptor is None:
            return True
        signal.pidfd_send_signal(descriptor, signal.SIGTERM)
        with anyio.move_on_after(grace_seconds):
            await anyio.wait_readable(descriptor)
            return True
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        await anyio.wait_readable(descriptor)
        return False


def describe_exit(status: int) -> str:
    """An exit status of `subprocess` in words."""
    return f"was ended by {signal.Signals(-status).name}" if status < 0 else f"exited with code {status}"
