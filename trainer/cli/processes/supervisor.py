"""A command in the background that leaves a record: `python supervisor.py RECORD LOG VERSION COMMAND...`.

The supervisor detaches itself from the terminal, runs the command with its output appended to LOG, and keeps RECORD up
to date: the process, when it started, of which version of `trainer` and, later, how it ended.

It stays in memory for as long as the command runs, and so imports nothing but the standard library, and is run by the
path of this file: the package `trainer` would double what it takes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

FORMER = "0.1"
"""The version that notes none in its records."""


def boot_id() -> str:
    """Identity of this run of the machine (random(4))."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process of this machine since it was booted: a recycled pid is another identity."""

    pid: int
    start_time: int
    """Clock ticks after boot (proc(5), `/proc/PID/stat` field 22)."""
    boot_id: str

    @classmethod
    def of(cls, pid: int) -> ProcessIdentity | None:
        """The process that has this pid now; None when there is none or it is a zombie."""
        try:
            state, start_time = _stat(pid)
        except (FileNotFoundError, ProcessLookupError):
            return None
        return None if state in {"Z", "X"} else cls(pid, start_time, boot_id())

    @classmethod
    def of_child(cls, pid: int) -> ProcessIdentity:
        """A child of this process that has not been waited for, whether or not it has ended."""
        _, start_time = _stat(pid)
        return cls(pid, start_time, boot_id())

    def program(self) -> str:
        """The path by which its program was started; "" when it has ended."""
        try:
            return os.fsdecode(Path(f"/proc/{self.pid}/cmdline").read_bytes().partition(b"\0")[0])
        except (FileNotFoundError, ProcessLookupError):
            return ""

    def is_running(self) -> bool:
        """Whether this process, and not another one with its pid, still runs."""
        return ProcessIdentity.of(self.pid) == self


def _stat(pid: int) -> tuple[str, int]:
    """State and start time of a process (proc(5), fields 3 and 22); its name before them may have any character."""
    state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return state, int(fields[18])


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run of a command in the background."""

    process: ProcessIdentity
    started: datetime
    exit_status: int | None = None
    """Exit code, or -N for signal N; None while it runs, or when the supervisor was killed as well."""
    supervisor: ProcessIdentity | None = None
    """Writes the exit status when the process has ended."""
    version: str = FORMER
    """The version of `trainer` that has started it. Default: 0.1, which notes none."""

    @classmethod
    def read(cls, path: Path) -> RunRecord | None:
        """The record in this file; None when there is none or it is not readable as one."""
        try:
            found = json.loads(path.read_bytes())
            supervisor = found["supervisor"]
            return cls(
                ProcessIdentity(**found["process"]),
                datetime.fromisoformat(found["started"]),
                found["exit_status"],
                ProcessIdentity(**supervisor) if supervisor is not None else None,
                str(found.get("version", FORMER)),
            )
        except (FileNotFoundError, NotADirectoryError, ValueError, LookupError, TypeError):
            return None

    def write(self, path: Path) -> None:
        """Replace the file atomically."""
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        temporary.write_text(json.dumps(asdict(self) | {"started": self.started.isoformat()}))
        temporary.replace(path)


def _detach(log: Path) -> None:
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)


def _supervise(record: Path, log: Path, version: str, command: list[str], started_signal: int) -> None:
    _detach(log)
    try:
        child = subprocess.Popen(command)
    except OSError as error:
        os.write(started_signal, f"{error}\n".encode())
        return
    child_process, this = ProcessIdentity.of_child(child.pid), ProcessIdentity.of(os.getpid())
    run = RunRecord(child_process, datetime.now(UTC), supervisor=this, version=version)
    run.write(record)
    os.close(started_signal)
    replace(run, exit_status=child.wait()).write(record)


def _main() -> None:
    record, log, version, command = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4:]
    record.unlink(missing_ok=True)
    failure, started_signal = os.pipe()
    if os.fork() == 0:
        os.close(failure)
        _supervise(record, log, version, command, started_signal)
        return
    os.close(started_signal)
    with os.fdopen(failure) as stream:
        sys.exit(stream.read().strip() or 0)


if __name__ == "__main__":
    _main()
