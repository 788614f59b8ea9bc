"""The first process of a container: builds its file system, starts its program, passes signals on, reaps orphans."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, NoReturn

from . import filesystem, linux, namespaces, processes, reports

if TYPE_CHECKING:
    from .spec import ContainerSpec

_OWN = {
    *(signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGPIPE),
    *(signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP, signal.SIGSYS, signal.SIGABRT),
}
PASSED_ON = frozenset(signal.valid_signals()) - _OWN
"""Signals that are meant for the program: all but those that cannot be, or that tell this process of itself."""


def run(spec: ContainerSpec, output: int, events: int, go: int) -> NoReturn:
    """Run the container's program to its end and report to `events`.

    Args:
        spec: what to run.
        output: becomes standard output and error of the program.
        events: reports for the monitor.
        go: yields one byte once the monitor lives and will see the end; end of file means that it has died.
    """
    try:
        linux.set_process_name("pod-init")
        linux.die_with_parent()
        if os.read(go, 1):
            os.close(go)
            report = _live(spec, output, events)
            reports.send(events, report)
    except BaseException as error:
        reports.send(events, reports.Failed.because_of("filesystem", error))
    finally:
        os._exit(0)


def _live(spec: ContainerSpec, output: int, events: int) -> reports.Report:
    watched: set[int] = {signal.SIGCHLD, *PASSED_ON}
    signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    if spec.isolated:
        namespaces.make(("mnt",))
        filesystem.build(spec.new_root, spec.operations)
    else:
        linux.adopt_orphans()
    _redirect(output)
    try:
        program = processes.start(spec)
    except processes.StartError as error:
        return reports.Failed("exec", str(error))
    reports.send(events, reports.Started())
    status = _wait_for(program, watched)
    if not spec.isolated:
        processes.kill_descendants()
    return reports.from_wait_status(status)


def _redirect(output: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)


def _wait_for(program: int, watched: set[int]) -> int:
    while True:
        number = signal.sigwait(watched)
        if number != signal.SIGCHLD:
            os.kill(program, number)
            continue
        status = _reap(program)
        if status is not None:
            return status


def _reap(program: int) -> int | None:
    """Collect all children that have ended; the wait status of `program` if it is among them."""
    found: int | None = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == program:
            found = status
