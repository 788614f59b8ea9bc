"""Processes that get commands as lines of JSON on standard input, and answer so on standard output."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import anyio
import msgspec


class WorkerError(RuntimeError):
    """A process has ended; what it said is above."""


class Worker:
    """A process that runs a module of this package; it ends with the block.

    Args:
        module: the module.
        log: file for its standard error. Default: that of this process.
    """

    def __init__(self, module: str, log: Path | None = None) -> None:
        self._module = module
        self._log = log

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", self._module]
        with ExitStack() as stack:
            log = stack.enter_context(self._log.open("ab")) if self._log is not None else None
            # Whoever compiles as it imports takes 4 MiB more than what starts from byte code, as images do.
            environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment
            )
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()

    def ask(self, command: str, **arguments: object) -> dict[str, Any]:
        """Have a command carried out and return its answer.

        Raises:
            WorkerError: the process has ended.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(msgspec.json.encode([command, arguments]) + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise WorkerError(f"{self._module} has ended during {command!r}")
        answer: dict[str, Any] = msgspec.json.decode(line)
        return answer


def read_command(line: str) -> tuple[str, dict[str, Any]]:
    """The name and the arguments of a command."""
    name, arguments = msgspec.json.decode(line)
    return name, arguments


def write_answer(answer: object) -> None:
    """Answer a command."""
    sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
    sys.stdout.flush()


async def obey(commands: Mapping[str, Callable[..., Awaitable[object]]]) -> None:
    """Carry out commands until standard input ends."""
    while line := await anyio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True):
        name, arguments = read_command(line)
        write_answer(await commands[name](**arguments))
