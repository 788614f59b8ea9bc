"""A command in the background that leaves a record: `python -m trainer.cli.processes.supervisor RECORD LOG COMMAND...`.

The supervisor detaches itself from the terminal, runs the command with its output appended to LOG, and keeps RECORD up
to date: the process, when it started and, later, how it ended.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import anyio
import msgspec

from trainer.cli.errors import CommandError
from trainer.cli.processes.process import ProcessIdentity


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run of a command in the background."""

    process: ProcessIdentity
    started: datetime
    exit_status: int | None = None
    """Exit code, or -N for signal N; None while it runs, or when the supervisor was killed as well."""
    supervisor: ProcessIdentity | None = None
    """Writes the exit status when the process has ended."""

    @classmethod
    def read(cls, path: Path) -> RunRecord | None:
        """The record in this file; None when there is none or it is not readable as one."""
        try:
            return msgspec.json.decode(path.read_bytes(), type=cls)
        except (FileNotFoundError, NotADirectoryError, ValueError, msgspec.MsgspecError):
            return None

    def write(self, path: Path) -> None:
        """Replace the file atomically."""
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        temporary.write_bytes(msgspec.json.encode(self))
        temporary.replace(path)


async def start_supervised(command: list[str], *, record: Path, log: Path) -> RunRecord:
    """Start a command in the background; it outlives this process and its terminal."""
    supervisor = [sys.executable, "-m", "trainer.cli.processes.supervisor", str(record), str(log), *command]
    # A session of its own: Ctrl-C reaches the whole foreground group of a terminal.
    result = await anyio.run_process(supervisor, stdin=subprocess.DEVNULL, check=False, start_new_session=True)
    started = await anyio.to_thread.run_sync(RunRecord.read, record)
    if result.returncode != 0 or started is None:
        detail = result.stderr.decode(errors="replace").strip()
        raise CommandError(f"cannot start {command[0]} in the background: {detail}")
    return started


def _detach(log: Path) -> None:
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)


def _supervise(record: Path, log: Path, command: list[str], started_signal: int) -> None:
    _detach(log)
    try:
        child = subprocess.Popen(command)
    except OSError as error:
        os.write(started_signal, f"{error}\n".encode())
        return
    child_process, this = ProcessIdentity.of_child(child.pid), ProcessIdentity.of(os.getpid())
    run = RunRecord(child_process, datetime.now(UTC), supervisor=this)
    run.write(record)
    os.close(started_signal)
    replace(run, exit_status=child.wait()).write(record)


def _main() -> None:
    record, log, command = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    record.unlink(missing_ok=True)
    failure, started_signal = os.pipe()
    if os.fork() == 0:
        os.close(failure)
        _supervise(record, log, command, started_signal)
        return
    os.close(started_signal)
    with os.fdopen(failure) as stream:
        sys.exit(stream.read().strip() or 0)


if __name__ == "__main__":
    _main()
