"""Starting a program, and ending all that came of it."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import signal
import termios
from pathlib import Path
from typing import NoReturn

from . import linux
from .reports import NOT_FOUND
from .spec import ContainerSpec


class ProcessStartError(Exception):
    """The program cannot be started; the message is for the user."""


def start(spec: ContainerSpec, *, terminal: bool = False) -> int:
    """Start the container's program in its own session, which a terminal as standard input controls; returns its PID.

    Raises:
        ProcessStartError: no such executable or working directory, or no permission.
    """
    problem_out, problem_in = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become(spec, problem_in, terminal=terminal)
    os.close(problem_in)
    with os.fdopen(problem_out, "rb") as pipe:
        # Empty when exec has closed the other end.
        problem = pipe.read()
    if problem:
        os.waitpid(pid, 0)
        raise ProcessStartError(problem.decode(errors="replace"))
    return pid


def kill_descendants() -> None:
    """Kill and reap all children, and the orphans that `linux.adopt_orphans` makes children, until none is left."""
    while killed := [pid for pid in _children() if _kill(pid)]:
        for pid in killed:
            os.waitpid(pid, 0)


def kill_session(leader: int) -> None:
    """Kill a process and all others of its session, and reap none of them."""
    killed: set[int] = set()
    while found := {pid for pid in _processes() if _stat_of(pid)[_SESSION : _SESSION + 1] == [str(leader)]} - killed:
        for pid in found:
            # It may have ended meanwhile.
            with contextlib.suppress(ProcessLookupError):
                _kill(pid)
        killed |= found


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except PermissionError:
        # A set-user-ID program; it ends when it likes.
        return False
    return True


def _children() -> list[int]:
    own = str(os.getpid())
    return [pid for pid in _processes() if _stat_of(pid)[_PARENT : _PARENT + 1] == [own]]


def _processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


_PARENT, _SESSION = 1, 3
"""Fields of `/proc/PID/stat` after the name (proc(5))."""


def _stat_of(pid: int) -> list[str]:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return []
    # The name in parentheses may hold anything, so fields are counted from the last parenthesis.
    return stat.rpartition(")")[2].split()


def _become(spec: ContainerSpec, problem: int, *, terminal: bool) -> NoReturn:
    try:
        _prepare(spec, terminal=terminal)
        os.execvpe(spec.command[0], spec.command, spec.environment)  # noqa: S606 - no shell is wanted
    except BaseException as error:
        os.write(problem, _explain(spec, error).encode())
    os._exit(128)


def _prepare(spec: ContainerSpec, *, terminal: bool) -> None:
    if not spec.isolated:
        linux.die_with_parent()
    if spec.run_as is not None:
        linux.return_to(*spec.run_as)
    os.setsid()
    if terminal:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.umask(0o022)
    # The interpreter ignores the first two, a shell the next two for what it starts in the background, and nohup the
    # last one; a program expects the defaults.
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    try:
        os.chdir(spec.working_directory)
    except OSError as error:
        raise ProcessStartError(f'working directory "{spec.working_directory}": {error.strerror}') from error


def _explain(spec: ContainerSpec, error: BaseException) -> str:
    if isinstance(error, ProcessStartError):
        return str(error)
    program = spec.command[0]
    if isinstance(error, OSError) and error.errno == errno.ENOENT and "/" not in program:
        return f'exec: "{program}": {NOT_FOUND}'
    if isinstance(error, OSError):
        # As runc says it, which looks at a path before it executes it.
        looked = f"stat {program}: " if error.errno == errno.ENOENT else ""
        return f'exec: "{program}": {looked}{(error.strerror or str(error)).lower()}'
    return f'exec: "{program}": {error}'
