"""When a container, or all containers of a pod, have to end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import anyio

from trainer.kube.clock import Clock, move_on_after
from trainer_devcluster.log_paths import log_files

DEFAULT_PATH = "/dev/termination-log"
_LONGEST = 4096
_LONGEST_FROM_LOG = 2048
_LINES_FROM_LOG = 80
_TAIL = 64 * 1024


class Termination:
    """An end: first a request, then, after the grace period, the order."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._deadline = float("inf")
        self._shortened = anyio.Event()
        self.requested = anyio.Event()
        """Programs get SIGTERM, and nothing is started any more."""
        self.overdue = anyio.Event()
        """The grace period is over: programs get SIGKILL."""
        self.at_once = anyio.Event()
        """There is no grace at all, not even for programs that have only just got SIGTERM."""

    @property
    def remaining(self) -> float:
        """Seconds of the grace period that are left; infinite before the request."""
        return max(self._deadline - self._clock.monotonic(), 0.0)

    def request(self, grace: float) -> None:
        """End within so many seconds; a later request can only shorten what an earlier one granted."""
        self._deadline = min(self._deadline, self._clock.monotonic() + grace)
        self._shortened.set()
        self.requested.set()
        if grace <= 0:
            self.overdue.set()
            self.at_once.set()

    async def enforce(self) -> None:
        """Turn the request into the order when the grace period is over."""
        await self.requested.wait()
        while self.remaining > 0:
            self._shortened = anyio.Event()
            async with move_on_after(self._clock, self.remaining):
                await self._shortened.wait()
        self.overdue.set()

    async def pause(self, seconds: float) -> None:
        """Wait so long, or until termination is requested."""
        async with move_on_after(self._clock, seconds):
            await self.requested.wait()

    async def unless_requested(self, event: anyio.Event) -> bool:
        """Wait for an event; False if termination was requested before."""
        await _until(self.requested, event.wait)
        return event.is_set()

    async def within_grace(self, work: Callable[[], Awaitable[object]]) -> None:
        """Do something that is cancelled when the grace period is over."""
        await _until(self.overdue, work)


async def _until(limit: anyio.Event, work: Callable[[], Awaitable[object]]) -> None:
    async with anyio.create_task_group() as tasks:

        async def cancel() -> None:
            await limit.wait()
            tasks.cancel_scope.cancel()

        tasks.start_soon(cancel)
        await work()
        tasks.cancel_scope.cancel()


def termination_message(container: Mapping[str, Any], exit_code: int, message_file: Path, log: Path) -> str:
    """The content of the message file, or the end of a failed container's log if the policy says so; may block.

    Args:
        container: its specification.
        exit_code: how it ended.
        message_file: what it may have written to.
        log: the first file of its log.
    """
    message = _read_start(message_file, _LONGEST)
    if message or exit_code == 0 or container.get("terminationMessagePolicy") != "FallbackToLogsOnError":
        return message
    return _end_of_log(log)


def _read_start(path: Path, size: int) -> str:
    try:
        with path.open("rb") as file:
            return file.read(size).decode(errors="replace")
    except FileNotFoundError:
        return ""


def _end_of_log(log: Path) -> str:
    # Another file may have been begun only just now.
    files = [*log_files(log).values()]
    entries = b"".join(map(_end_of_file, files[-2:])).split(b"\n")
    text = b"".join(map(_content, entries)).splitlines(keepends=True)
    return b"".join(text[-_LINES_FROM_LOG:])[-_LONGEST_FROM_LOG:].decode(errors="replace")


def _end_of_file(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - _TAIL, 0))
        return file.read()


def _content(entry: bytes) -> bytes:
    """The text of one CRI log entry: `<time> <stream> <F or P> <text>`."""
    _, _, rest = entry.partition(b" ")
    _, _, rest = rest.partition(b" ")
    tag, _, text = rest.partition(b" ")
    return text + b"\n" if tag == b"F" else text
