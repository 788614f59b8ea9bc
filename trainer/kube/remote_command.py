"""Commands in running containers: what is asked for, and the streams of one that runs (subresource pods/exec)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol


class OutputStream(IntEnum):
    """A stream that a command writes to."""

    OUTPUT = 1
    ERROR = 2


@dataclass(frozen=True, slots=True)
class CommandOptions:
    """The command to run (query parameters of pods/exec)."""

    command: tuple[str, ...]
    """The program and its arguments; no shell reads them."""
    container: str | None = None
    """Default: the only one of the pod."""
    stdin: bool = False
    """Whether the command gets input. Default: False, it is empty."""
    tty: bool = False
    """Whether its streams are one terminal, without a stream for errors. Default: False."""


class RemoteCommand(Protocol):
    """A command that runs; one task may read while another one writes."""

    def output(self) -> AsyncGenerator[tuple[OutputStream, bytes], None]:
        """What the command writes, as it arrives, until it ends; who reads slowly slows the command.

        Raises:
            ApiError: the command could not be started, or the container runtime has lost it; the message says why.
            TransportError: the connection has ended before the command.
        """

    @property
    def exit_code(self) -> int:
        """How the command has ended, when `output` has; 128 + N after signal N."""

    async def write(self, data: bytes) -> None:
        """Send input, and wait while the command does not read it; what comes after its end is lost."""

    async def end_input(self) -> None:
        """Say that there is no more input.

        Raises:
            TransportError: the API server is older than Kubernetes 1.30 and cannot say so to the command.
        """

    async def resize(self, columns: int, rows: int) -> None:
        """Say how large the terminal is."""

    async def keep_alive(self) -> None:
        """Send something now and then, until cancelled: proxies end connections on which nothing happens."""


class CommandClient(Protocol):
    """A client that runs commands in containers."""

    def execute(self, pod: str, namespace: str, options: CommandOptions) -> AbstractAsyncContextManager[RemoteCommand]:
        """Run a command, until it ends or the context does.

        Whether the end of the context ends the command is up to the container runtime. Nothing is repeated.

        Raises:
            ApiError: it may not be run there, or there is no such container that runs.
            TransportError: no answer.
        """
