"""The first process of a container: builds its file system, starts its program, passes signals on, reaps orphans."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

from . import linux, processes, reports
from .spec import ContainerSpec, FilesystemStep

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
        reports.send(events, reports.StartFailed.because_of("filesystem", error))
    finally:
        os._exit(0)


def _live(spec: ContainerSpec, output: int, events: int) -> reports.Report:
    watched: set[int] = {signal.SIGCHLD, *PASSED_ON}
    signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    if spec.isolated:
        linux.make(("mnt",))
        build_root(spec.new_root, spec.operations)
    else:
        linux.adopt_orphans()
    _redirect(output)
    try:
        program = processes.start(spec)
    except processes.ProcessStartError as error:
        return reports.StartFailed("exec", str(error))
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


def build_root(new_root: str, operations: Iterable[FilesystemStep]) -> None:
    """Put the root together on `new_root` and make it the root of this process; needs own mount and PID namespaces.

    Raises:
        OSError: a mount failed; the message names its target.
    """
    linux.mount("none", "/", "none", linux.MS_REC | linux.MS_PRIVATE)
    linux.mount("tmpfs", new_root, "tmpfs", 0, "mode=755")
    # A recursive bind of the directory around new_root must not copy what is already mounted there.
    linux.mount("none", new_root, "none", linux.MS_UNBINDABLE)
    for operation in operations:
        try:
            _carry_out(operation, new_root + operation.target)
        except OSError as error:
            if not operation.optional:
                raise OSError(error.errno, f"{operation.kind} {operation.target}: {error.strerror}") from error
    linux.mount("none", new_root, "none", linux.MS_PRIVATE)
    linux.switch_root(new_root)


def _carry_out(operation: FilesystemStep, target: str) -> None:
    match operation.kind:
        case "directory":
            Path(target).mkdir(parents=True, exist_ok=True)
        case "symlink":
            Path(target).symlink_to(operation.source)
        case "tmpfs":
            # A directory that everybody may write to, such as /tmp, stays one.
            mode = stat.S_IMODE(Path(target).stat().st_mode)
            linux.mount("tmpfs", target, "tmpfs", 0, f"mode={mode:o}")
        case "proc":
            flags = linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC
            linux.mount("proc", target, "proc", flags)
        case "bind":
            _bind(operation, target)


def _bind(operation: FilesystemStep, target: str) -> None:
    if not os.path.lexists(target):
        if Path(operation.source).is_dir():
            Path(target).mkdir()
        else:
            Path(target).touch()
    linux.mount(operation.source, target, "none", linux.MS_BIND | linux.MS_REC)
    if operation.read_only:
        linux.make_read_only(target)
