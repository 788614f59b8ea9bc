"""A cluster whose containers are processes of this machine."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest
from anyio.abc import ByteReceiveStream, Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from tests.cli.conftest import ConnectedClient, node_pod, train_job
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.errors import InternalError
from trainer.kube.remote_command import CommandClient, CommandOptions, OutputStream, RemoteCommand
from trainer.workloads import JOBSETS


@dataclass
class LocalCommand(RemoteCommand):
    """A command that is a process here."""

    process: Process
    received: MemoryObjectReceiveStream[tuple[OutputStream, bytes]]

    async def output(self) -> AsyncGenerator[tuple[OutputStream, bytes], None]:
        """See `RemoteCommand`."""
        async for item in self.received:
            yield item
        await self.process.wait()

    @property
    def exit_code(self) -> int:
        """See `RemoteCommand`."""
        assert self.process.returncode is not None
        return self.process.returncode

    async def write(self, data: bytes) -> None:
        """See `RemoteCommand`."""
        assert self.process.stdin is not None
        try:
            await self.process.stdin.send(data)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return

    async def end_input(self) -> None:
        """See `RemoteCommand`."""
        assert self.process.stdin is not None
        await self.process.stdin.aclose()

    async def resize(self, columns: int, rows: int) -> None:
        """See `RemoteCommand`."""

    async def keep_alive(self) -> None:
        """See `RemoteCommand`."""
        await anyio.sleep_forever()


class NeverRun(RemoteCommand):
    """A command that the container runtime cannot start."""

    exit_code = -1

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def output(self) -> AsyncGenerator[tuple[OutputStream, bytes], None]:
        """See `RemoteCommand`."""
        await anyio.lowlevel.checkpoint()
        if self._error:
            raise self._error
        yield OutputStream.OUTPUT, b""

    async def write(self, data: bytes) -> None:
        """See `RemoteCommand`."""

    async def end_input(self) -> None:
        """See `RemoteCommand`."""

    async def resize(self, columns: int, rows: int) -> None:
        """See `RemoteCommand`."""

    async def keep_alive(self) -> None:
        """See `RemoteCommand`."""
        await anyio.sleep_forever()


@dataclass
class Machine:
    """What containers have."""

    directory: Path
    """Their working directory."""
    programs: dict[str, Path | Exception] = field(default_factory=dict)
    """Programs in place of those of this machine, or why they do not run."""
    refusal: Exception | None = None
    """Why the API server starts nothing."""
    asked: list[tuple[str, CommandOptions]] = field(default_factory=list)
    """The commands so far, each with its pod."""


class CommandCluster(ConnectedClient, CommandClient):
    """A cluster that runs commands on this machine."""

    machine: Machine

    @asynccontextmanager
    async def execute(self, pod: str, namespace: str, options: CommandOptions) -> AsyncIterator[RemoteCommand]:
        """See `CommandClient`."""
        machine = self.machine
        machine.asked.append((pod, options))
        if machine.refusal is not None:
            raise machine.refusal
        program, *arguments = options.command
        instead = machine.programs.get(program, program)
        if isinstance(instead, Exception):
            yield NeverRun(instead)
            return
        try:
            process = await anyio.open_process([str(instead), *arguments], cwd=machine.directory)
        except FileNotFoundError:
            text = f'error executing command in container: exec: "{program}": executable file not found in $PATH'
            yield NeverRun(InternalError(500, f"Internal error occurred: {text}"))
            return
        if not options.stdin:
            assert process.stdin is not None
            await process.stdin.aclose()
        sent, received = anyio.create_memory_object_stream[tuple[OutputStream, bytes]](math.inf)
        async with received, anyio.create_task_group() as tasks:
            async with sent:
                tasks.start_soon(_pump, OutputStream.OUTPUT, process.stdout, sent.clone())
                tasks.start_soon(_pump, OutputStream.ERROR, process.stderr, sent.clone())
            try:
                yield LocalCommand(process, received)
            finally:
                with anyio.CancelScope(shield=True):
                    await process.aclose()
                tasks.cancel_scope.cancel()


async def _pump(
    stream: OutputStream,
    source: ByteReceiveStream | None,
    sink: MemoryObjectSendStream[tuple[OutputStream, bytes]],
) -> None:
    assert source is not None
    # The command may be left before it has ended.
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
        async with sink:
            async for chunk in source:
                await sink.send((stream, chunk))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """The machine of the containers."""
    directory = tmp_path / "container"
    directory.mkdir()
    return Machine(directory)


@pytest.fixture
def served(machine: Machine) -> CommandCluster:
    """A cluster with a TrainJob `demo` that runs on two nodes."""
    cluster = CommandCluster(resources=[TRAIN_JOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES, JOBSETS])
    cluster.machine = machine
    cluster.add(train_job("demo", state="Running"))
    for index in range(2):
        pod = node_pod("demo", index)
        cluster.add(pod | {"metadata": pod["metadata"] | {"uid": f"pod-{index}"}})
    return cluster
