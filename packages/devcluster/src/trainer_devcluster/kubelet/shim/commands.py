"""Commands in a container beside its program: those of probes and hooks, and those that users run (`pods/exec`)."""

from __future__ import annotations

import os
import selectors
import signal
from collections.abc import Mapping
from dataclasses import replace
from typing import NoReturn

from . import linux, processes, reports
from .spec import CommandSpec, ContainerSpec

_STREAMS = 3
"""Standard input, output and error."""


def step_aside(container: ContainerSpec) -> None:
    """Make a child of the container's monitor the process that sees to a command.

    With a PID namespace it leaves that to a child of its own, which init adopts: the namespace, in which the monitor
    makes all its children, would not end before they were reaped.
    """
    if container.isolated and os.fork():
        os._exit(0)
    if not container.isolated:
        linux.die_with_parent()


def start(
    command: tuple[str, ...],
    container: ContainerSpec,
    init: int,
    streams: Mapping[int, int],
    *,
    terminal: bool = False,
) -> int:
    """Start a command as the container's program was started; returns its PID.

    Args:
        command: what to run.
        container: what runs in the container.
        init: PID of the container's first process.
        streams: descriptors that become standard input (0), output (1) and error (2); others are empty.
        terminal: whether they are a terminal, which is to control the command.

    Raises:
        ProcessStartError: the command does not exist.
        OSError: the container has ended.
    """
    if container.isolated:
        linux.join((f"/proc/{init}/ns/mnt",))
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(_STREAMS):
        os.dup2(streams.get(number, null), number)
    for descriptor in {*streams.values()}:
        os.close(descriptor)
    try:
        # Container runtimes name a kind of terminal, too.
        environment = ({"TERM": "xterm"} if terminal else {}) | container.environment
        return processes.start(replace(container, command=command, environment=environment), terminal=terminal)
    finally:
        # Whoever is at the other end sees when the command has closed them.
        for number in range(_STREAMS):
            os.dup2(null, number)


def serve(spec: CommandSpec, container: ContainerSpec, init: int, descriptors: list[int]) -> NoReturn:
    """Run a command in this process, which is made for it and ends with it, or in a child of it.

    Args:
        spec: what to run.
        container: what runs in the container.
        init: PID of the container's first process.
        descriptors: a socket for reports, whose end kills the command, and then its streams.
    """
    step_aside(container)
    try:
        channel, streams = descriptors[0], dict(zip(spec.streams, descriptors[1:], strict=True))
        reports.send(channel, _run(spec, container, init, channel, streams))
    finally:
        os._exit(0)


def _run(
    spec: CommandSpec, container: ContainerSpec, init: int, channel: int, streams: Mapping[int, int]
) -> reports.Report:
    try:
        program = start(spec.command, container, init, streams, terminal=spec.terminal)
    except processes.ProcessStartError as error:
        return reports.StartFailed("exec", str(error))
    except OSError as error:
        return reports.StartFailed.because_of("exec", error)
    reports.send(channel, reports.Started())
    return reports.from_wait_status(_wait_for(program, channel))


def _wait_for(program: int, channel: int) -> int:
    """The wait status of a program, which is killed with its session when the other end of the channel closes."""
    wake_out, wake_in = os.pipe()
    os.set_blocking(wake_in, False)
    signal.set_wakeup_fd(wake_in, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    with selectors.DefaultSelector() as selector:
        selector.register(wake_out, selectors.EVENT_READ)
        selector.register(channel, selectors.EVENT_READ)
        while True:
            pid, status = os.waitpid(program, os.WNOHANG)
            if pid:
                return status
            for key, _ in selector.select():
                if not _received(key.fd):
                    selector.unregister(channel)
                    processes.kill_session(program)


def _received(descriptor: int) -> bytes:
    """What has come; nothing at the end, also at that of a socket which was closed before all reports were read."""
    try:
        return os.read(descriptor, 1024)
    except ConnectionResetError:
        return b""
