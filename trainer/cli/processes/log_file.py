"""The log file of a process that a command has started, whose end says why the process has failed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.to_thread import run_sync

from trainer.cli.console import quote
from trainer.cli.errors import CommandError

_POLL_SECONDS = 0.05
_READY_SECONDS = 60.0
_TAIL_LINES = 10


@dataclass(frozen=True, slots=True)
class LogFile:
    """Standard output and error of one process."""

    path: Path

    def tail(self) -> list[str]:
        """The last lines; none when there is no file."""
        try:
            return self.path.read_text(errors="replace").splitlines()[-_TAIL_LINES:]
        except FileNotFoundError:
            return []

    def has(self, text: str) -> bool:
        """Whether the process has written this text; blocks."""
        if not self.path.exists():
            return False
        with self.path.open(errors="replace") as lines:
            return any(text in line for line in lines)

    def rotate(self) -> None:
        """Rename the file to `.1`, which is replaced."""
        if self.path.exists():
            self.path.replace(self.path.with_name(f"{self.path.name}.1"))

    async def wait_until_ready(
        self, name: str, is_ready: Callable[[], Awaitable[bool]], ended: Callable[[], Awaitable[str]]
    ) -> None:
        """Wait until the process is ready; `ended` returns once it has ended, with how."""
        problem = f"was not ready after {_READY_SECONDS:.0f} s"
        async with anyio.create_task_group() as tasks:

            async def wait_for_end() -> None:
                nonlocal problem
                problem = await ended()
                tasks.cancel_scope.cancel()

            tasks.start_soon(wait_for_end)
            tasks.cancel_scope.deadline = anyio.current_time() + _READY_SECONDS
            while not await is_ready():  # noqa: ASYNC110 - another process becomes it
                await anyio.sleep(_POLL_SECONDS)
            problem = ""
            tasks.cancel_scope.cancel()
        if problem:
            await self.fail(name, problem)

    async def fail(self, name: str, problem: str) -> None:
        """Print the end of the log and raise."""
        quote(self.path, await run_sync(self.tail))
        raise CommandError(f"the {name} {problem}")
