"""The background processes of `trainer up`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.to_thread import run_sync

import trainer
from trainer.cli.errors import CommandError
from trainer.cli.processes import supervisor
from trainer.cli.processes.log_file import LogFile
from trainer.cli.processes.process import describe_exit, stop_process
from trainer.cli.processes.state_directory import StateDirectory, existing_clusters
from trainer.cli.processes.supervisor import RunRecord, boot_id

_POLL_SECONDS = 0.05
_GRACE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class BackgroundProcess:
    """The cluster, the manager or the recorder; every call reads the state directory anew."""

    name: str
    state: StateDirectory

    @property
    def log(self) -> LogFile:
        """Its standard output and error."""
        return LogFile(self.state.log(self.name))

    def record_exists(self) -> bool:
        """Whether it was started, and not stopped since."""
        return self.state.record(self.name).exists()

    def running(self) -> RunRecord | None:
        """The present run; None when it does not run."""
        run = RunRecord.read(self.state.record(self.name))
        return run if run is not None and run.process.is_running() else None

    def other_version(self) -> str:
        """The version of `trainer` that has started what runs; "" if it is this one, or nothing runs."""
        run = self.running()
        return run.version if run is not None and run.version != trainer.__version__ else ""

    def is_replaced(self) -> bool:
        """Whether what runs is of another version, and pip has put this one in the place of its files."""
        run = self.running()
        return bool(self.other_version()) and run is not None and run.process.program() == sys.executable

    def crash(self) -> str | None:
        """How the last run ended, if `trainer` did not stop it.

        None if it runs, was never started, or has ended so recently that its supervisor has not yet recorded it. One
        whose stop was interrupted has not crashed.
        """
        if self.is_stopping():
            return None
        run = RunRecord.read(self.state.record(self.name))
        if run is None or run.process.is_running():
            return None
        if run.exit_status is None and run.supervisor is not None:
            if run.supervisor.is_running():
                return None
            # It may have written after the record was read, and ended.
            run = RunRecord.read(self.state.record(self.name)) or run
        if run.exit_status is not None:
            return describe_exit(run.exit_status)
        if run.process.boot_id != boot_id():
            return "ended when the machine was restarted"
        return "ended without leaving an exit code"

    async def start(self, command: list[str], is_ready: Callable[[], Awaitable[bool]]) -> RunRecord:
        """Start it and wait until it is ready; the log of the last run is kept as `.1`.

        Whoever is interrupted leaves either no process, or one with a record, which the next command finds.
        """
        await run_sync(self.log.rotate)
        with anyio.CancelScope(shield=True):
            run = await start_supervised(command, record=self.state.record(self.name), log=self.log.path)
        await self.wait_until_ready(is_ready)
        return run

    async def wait_until_ready(self, is_ready: Callable[[], Awaitable[bool]]) -> None:
        """Wait until it is ready; returns at once where it is."""
        await self.log.wait_until_ready(self.name, is_ready, self._wait_for_crash)

    def is_stopping(self) -> bool:
        """Whether a command has begun to stop it, and was interrupted or goes on."""
        return self.state.stopping(self.name).exists()

    async def stop(self) -> bool:
        """Stop it if it runs, and forget its last run; returns whether it ran."""
        run = await run_sync(self.running)
        mark = self.state.stopping(self.name)
        if run is not None:
            await run_sync(mark.touch)
            await stop_process(run.process, grace_seconds=_GRACE_SECONDS)
            await self._wait_for_last_record()
        await run_sync(lambda: self.state.record(self.name).unlink(missing_ok=True))
        await run_sync(lambda: mark.unlink(missing_ok=True))
        return run is not None

    async def _wait_for_crash(self) -> str:
        while (ending := await run_sync(self.crash)) is None:  # noqa: ASYNC110 - another process writes it
            await anyio.sleep(_POLL_SECONDS)
        return ending

    async def _wait_for_last_record(self) -> None:
        """The supervisor writes the record again at the end of the process; it must not do so after its removal."""
        with anyio.move_on_after(1):
            record = self.state.record(self.name)
            while (run := await run_sync(RunRecord.read, record)) and run.exit_status is None:  # noqa: ASYNC110
                await anyio.sleep(_POLL_SECONDS)


def running_clusters() -> list[StateDirectory]:
    """The clusters of this user that run now, the default first; blocks."""
    return [each for each in existing_clusters() if BackgroundProcess("cluster", each).running() is not None]


def version_problem(state: StateDirectory) -> str:
    """What it means that another version of `trainer` has started a cluster, in words; "" if it has not. Blocks."""
    cluster = BackgroundProcess("cluster", state)
    version = cluster.other_version()
    if not version:
        return ""
    anew = f"{state.command('down')} and {state.command('up')} start it anew"
    if not cluster.is_replaced():
        return f"the cluster was started by trainer {version}: {anew}"
    return (
        f"the cluster was started by trainer {version}, whose files this version has replaced: pods that run go on, "
        f"and new ones may fail; {anew}"
    )


async def start_supervised(command: list[str], *, record: Path, log: Path) -> RunRecord:
    """Start a command in the background; it outlives this process and its terminal."""
    program = [sys.executable, "-P", supervisor.__file__, str(record), str(log), trainer.__version__, *command]
    # A session of its own: Ctrl-C reaches the whole foreground group of a terminal.
    result = await anyio.run_process(program, stdin=subprocess.DEVNULL, check=False, start_new_session=True)
    started = await run_sync(RunRecord.read, record)
    if result.returncode != 0 or started is None:
        detail = result.stderr.decode(errors="replace").strip()
        raise CommandError(f"cannot start {command[0]} in the background: {detail}")
    return started
