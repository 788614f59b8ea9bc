"""The streams of this process as those of a command elsewhere."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import AsyncIterator

import anyio
import anyio.lowlevel
from anyio.to_thread import run_sync

from trainer.cli.containers.terminal import Terminal
from trainer.cli.errors import CommandError
from trainer.kube.errors import ApiError, TransportError
from trainer.kube.remote_command import OutputStream, RemoteCommand

_CHUNK = 64 * 1024
_PREFIXES = ("Internal error occurred: ", "error executing command in container: ")
"""Words of API servers and kubelets before those of the container runtime."""


async def attach_streams(command: RemoteCommand, *, with_input: bool, terminal: Terminal | None) -> int:
    """Copy input and output until the command ends; returns its exit code.

    Args:
        command: what runs.
        with_input: whether it gets standard input.
        terminal: whose size it follows. Default: None, it has no terminal.

    Raises:
        CommandError: it could not be started, or the connection is lost.
    """
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(command.keep_alive)
        if with_input:
            tasks.start_soon(_send_input, command)
        if terminal is not None:
            tasks.start_soon(_send_sizes, command, terminal)
        try:
            async for stream, data in command.output():
                await run_sync(_write, stream, data)
        except ApiError as error:
            raise CommandError(f"the command cannot run: {reason_of(error)}") from None
        except TransportError as error:
            raise CommandError(str(error)) from None
        tasks.cancel_scope.cancel()
    return command.exit_code


def reason_of(error: ApiError) -> str:
    """Why a command could not be started, in the words of the container runtime."""
    text = str(error)
    for prefix in _PREFIXES:
        text = text.removeprefix(prefix)
    return text


def _write(stream: OutputStream, data: bytes) -> None:
    target = sys.stdout if stream is OutputStream.OUTPUT else sys.stderr
    if target is None:  # the shell has closed it
        return
    target.buffer.write(data)
    target.buffer.flush()


async def _send_input(command: RemoteCommand) -> None:
    async for data in _input():
        await command.write(data)
    try:
        await command.end_input()
    except TransportError as error:
        raise CommandError(str(error)) from None


async def _send_sizes(command: RemoteCommand, terminal: Terminal) -> None:
    async for columns, rows in terminal.sizes():
        await command.resize(columns, rows)


async def _input() -> AsyncIterator[bytes]:
    """Standard input as it comes; no thread waits for it, which would keep the process from ending."""
    try:
        descriptor = sys.stdin.fileno()
    except (AttributeError, io.UnsupportedOperation):  # there is none, or that of a test
        if sys.stdin is not None:
            yield sys.stdin.buffer.read()
        return
    while True:
        try:
            await anyio.wait_readable(descriptor)
        except PermissionError:  # a file, which can always be read
            await anyio.lowlevel.checkpoint()
        data = await run_sync(os.read, descriptor, _CHUNK)
        if not data:
            return
        yield data
