"""Processes that outlive the command that started them, identified by more than a pid."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio


def boot_id() -> str:
    """Identity of this run of the machine (random(4))."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process of this machine since it was booted: a recycled pid is another identity."""

    pid: int
    start_time: int
    """Clock ticks after boot (proc(5), `/proc/PID/stat` field 22)."""
    boot_id: str

    @classmethod
    def of(cls, pid: int) -> ProcessIdentity | None:
        """The process that has this pid now; None when there is none or it is a zombie."""
        try:
            state, start_time = _stat(pid)
        except (FileNotFoundError, ProcessLookupError):
            return None
        return None if state in {"Z", "X"} else cls(pid, start_time, boot_id())

    @classmethod
    def of_child(cls, pid: int) -> ProcessIdentity:
        """A child of this process that has not been waited for, whether or not it has ended."""
        _, start_time = _stat(pid)
        return cls(pid, start_time, boot_id())

    def is_running(self) -> bool:
        """Whether this process, and not another one with its pid, still runs."""
        return ProcessIdentity.of(self.pid) == self


def _stat(pid: int) -> tuple[str, int]:
    """State and start time of a process (proc(5), fields 3 and 22); its name before them may have any character."""
    state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return state, int(fields[18])


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
