"""Commands in containers, between the API server, which has the connection of a user, and the kubelet, which runs them.

Both are in one process, so this stands in for the connection that an API server makes to a kubelet.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from trainer.kube.errors import KubeError


class CommandError(KubeError):
    """A command could not be started; the message is for the user."""


class WindowSize(NamedTuple):
    """Size of a terminal."""

    columns: int
    rows: int


@dataclass(frozen=True, slots=True)
class ContainerCommand:
    """A command to run in a container that runs."""

    pod_uid: str
    container: str
    command: tuple[str, ...]
    streams: frozenset[int]
    """The streams that are connected: 0 is standard input, 1 output, 2 error; the others are empty."""
    terminal: bool = False
    """Whether they are a terminal, whose output is stream 1."""


class CommandStreams(Protocol):
    """The user's end of a command's streams."""

    def input(self) -> AsyncIterator[bytes | WindowSize]:
        """What the user types, and new sizes of the terminal; `b""` ends the input."""

    async def send(self, stream: int, data: bytes) -> None:
        """Show what the command has written to standard output (1) or error (2); returns when there is room again."""


RunCommand: TypeAlias = Callable[[ContainerCommand, CommandStreams], Awaitable[int]]
"""Runs a command and returns its exit code, 128 + N after signal N; cancelled, it kills the command.

Raises:
    CommandError: it cannot be started.
"""


class CommandRunner:
    """Runs commands by the kubelet, as soon as there is one."""

    def __init__(self) -> None:
        self._run: RunCommand | None = None

    def register(self, run: RunCommand) -> None:
        """Take what runs commands."""
        self._run = run

    async def run(self, command: ContainerCommand, streams: CommandStreams) -> int:
        """See `RunCommand`."""
        if self._run is None:
            raise CommandError("no kubelet runs here: pods are objects without processes")
        return await self._run(command, streams)
