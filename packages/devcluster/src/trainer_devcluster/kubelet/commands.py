"""Commands that users run in containers (`pods/exec`): their streams on this machine, from start to exit code."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import termios
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Self

import anyio
from anyio.abc import UNIXSocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from trainer_devcluster.container_commands import CommandError, CommandStreams, ContainerCommand, WindowSize
from trainer_devcluster.kubelet.sandbox import RunningContainer
from trainer_devcluster.kubelet.shim import reports
from trainer_devcluster.kubelet.shim.spec import CommandSpec

_STDIN, _STDOUT = 0, 1
_CHUNK = 32 * 1024
_LONGEST_REPORT = 64 * 1024
_END_OF_TRANSMISSION = b"\x04"
"""Ends the input of a terminal."""
LOST = 137
"""Exit code of a command that ended with its container."""


async def run_command(container: RunningContainer, command: ContainerCommand, streams: CommandStreams) -> int:
    """Run a command to its end, see `RunCommand`."""
    with ExitStack() as stack:
        ends = _Ends.open(command, stack)
        channel = await _start(container, command, ends)
        async with channel:
            answers = BufferedByteReceiveStream(channel)
            outputs = [_Output(descriptor, partial(streams.send, stream)) for stream, descriptor in ends.outputs]
            async with anyio.create_task_group() as feeding:
                feeding.start_soon(_feed, ends, streams)
                async with anyio.create_task_group() as tasks:
                    for output in outputs:
                        tasks.start_soon(output.pump)
                    code = await _exit_code(answers)
                    for output in outputs:
                        output.end()
                feeding.cancel_scope.cancel()
    if isinstance(code, reports.StartFailed):
        raise CommandError(code.message)
    return code


@dataclass(frozen=True, slots=True)
class _Ends:
    """The ends of a command's streams: ours, and those of the command."""

    theirs: dict[int, int]
    """Descriptors by what they are to be."""
    outputs: tuple[tuple[int, int], ...]
    """Streams to read, each with its descriptor."""
    input: _Input | None = None
    terminal: bool = False

    @classmethod
    def open(cls, command: ContainerCommand, stack: ExitStack) -> Self:
        """Open them; the stack closes ours."""
        if command.terminal:
            master, theirs = os.openpty()
            keyboard = _input_of(master, stack, terminal=True)
            return cls(dict.fromkeys(range(3), theirs), ((_STDOUT, master),), keyboard, terminal=True)
        found: dict[int, int] = {}
        given: _Input | None = None
        outputs: list[tuple[int, int]] = []
        for number in sorted(command.streams):
            reading, writing = os.pipe()
            if number == _STDIN:
                found[number], given = reading, _input_of(writing, stack)
            else:
                found[number] = writing
                outputs.append((number, reading))
                os.set_blocking(reading, False)
                stack.callback(os.close, reading)
        return cls(found, tuple(outputs), given)

    def close_theirs(self) -> None:
        """The command has its ends."""
        for descriptor in {*self.theirs.values()}:
            os.close(descriptor)


def _input_of(descriptor: int, stack: ExitStack, *, terminal: bool = False) -> _Input:
    os.set_blocking(descriptor, False)
    given = _Input(descriptor, terminal=terminal)
    stack.callback(given.close)
    return given


async def _start(container: RunningContainer, command: ContainerCommand, ends: _Ends) -> UNIXSocketStream:
    """Have the container's monitor start the command; returns the socket with its reports, whose end kills it."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    try:
        spec = CommandSpec(command.command, tuple(ends.theirs), terminal=ends.terminal)
        await container.start_command(spec, [theirs.fileno(), *ends.theirs.values()])
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
        ends.close_theirs()
    return await UNIXSocketStream.from_socket(ours)


async def _exit_code(answers: BufferedByteReceiveStream) -> int | reports.StartFailed:
    while True:
        try:
            report = reports.decode(await answers.receive_until(b"\n", _LONGEST_REPORT))
        except (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError):
            return LOST
        if isinstance(report, reports.StartFailed):
            return report
        if isinstance(report, reports.Exited):
            return report.code


@dataclass(eq=False)
class _Output:
    """Passes on what a command writes, at the pace of the one who reads it."""

    descriptor: int
    send: Callable[[bytes], Awaitable[None]]
    _is_over: bool = False
    _wait: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    def end(self) -> None:
        """The command has ended: what has been written is passed on, and nothing is waited for any more.

        What it has left running may keep the stream open for as long as it likes.
        """
        self._is_over = True
        self._wait.cancel()

    async def pump(self) -> None:
        """Pass on all output."""
        while True:
            try:
                data = os.read(self.descriptor, _CHUNK)
            except BlockingIOError:
                if self._is_over:
                    return
                with self._wait:
                    await anyio.wait_readable(self.descriptor)
                if not self._is_over:
                    self._wait = anyio.CancelScope()
                continue
            except OSError:  # all ends of a terminal are closed
                return
            if not data:
                return
            await self.send(data)


class _Input:
    """The end of a command's input that the user's goes to."""

    def __init__(self, descriptor: int, *, terminal: bool) -> None:
        self._descriptor = descriptor
        self._terminal = terminal
        self._is_open = True

    def close(self) -> None:
        """Close it, unless that has been done."""
        if self._is_open:
            self._is_open = False
            os.close(self._descriptor)

    async def take(self, item: bytes | WindowSize) -> None:
        """Hand over what the user has typed, unless the command does not read any more."""
        if not self._is_open:
            return
        if isinstance(item, WindowSize):
            if self._terminal:
                fcntl.ioctl(self._descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", item.rows, item.columns, 0, 0))
        elif item or self._terminal:
            await self._write(item or _END_OF_TRANSMISSION)
        else:
            self.close()

    async def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:
                await anyio.wait_writable(self._descriptor)
            except OSError:  # the command has closed its end
                if not self._terminal:
                    self.close()
                return


async def _feed(ends: _Ends, streams: CommandStreams) -> None:
    async for item in streams.input():
        if ends.input is not None:
            await ends.input.take(item)
