"""The two processes that `trainer up` keeps running: the dev cluster and the controller manager."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import anyio
from anyio.to_thread import run_sync

from trainer.cli.processes.log_file import LogFile
from trainer.cli.processes.process import boot_id, describe_exit, stop_process
from trainer.cli.processes.supervisor import RunRecord, start_supervised

if TYPE_CHECKING:
    from trainer.cli.processes.state_directory import StateDirectory

_POLL_SECONDS = 0.05
_GRACE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class BackgroundProcess:
    """One of the two, by name; what it does is read from the state directory each time."""

    name: str
    state: StateDirectory

    @property
    def log(self) -> LogFile:
        """Its standard output and error."""
        return LogFile(self.state.log(self.name))

    def running(self) -> RunRecord | None:
        """The present run; None when it does not run."""
        run = RunRecord.read(self.state.record(self.name))
        return run if run is not None and run.process.is_running() else None

    def crash(self) -> str | None:
        """How the last run ended although nobody asked `trainer` to end it.

        None if it runs, was never started, or has ended so recently that its supervisor has not yet written how.
        """
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

    async def start(self, command: list[str], *, ready: str) -> RunRecord:
        """Start it and wait until its log has the text `ready`; the log of the last run is kept as `.1`.

        Raises:
            CommandError: it cannot be started, has ended, or is not ready in time.
        """
        await run_sync(self.log.rotate)
        run = await start_supervised(command, record=self.state.record(self.name), log=self.log.path)
        await self.log.wait_until_ready(self.name, ready, self._wait_for_crash)
        return run

    async def stop(self) -> bool:
        """Stop it if it runs, and forget its last run; returns whether it ran."""
        run = await run_sync(self.running)
        if run is not None:
            await stop_process(run.process, grace_seconds=_GRACE_SECONDS)
            await self._wait_for_last_record()
        await run_sync(lambda: self.state.record(self.name).unlink(missing_ok=True))
        return run is not None

    async def _wait_for_crash(self) -> str:
        while (ending := await run_sync(self.crash)) is None:  # noqa: ASYNC110 - another process writes it
            await anyio.sleep(_POLL_SECONDS)
        return ending

    async def _wait_for_last_record(self) -> None:
        """The supervisor writes once more when the process has ended; removed before that, the record would return."""
        with anyio.move_on_after(1):
            record = self.state.record(self.name)
            while (run := await run_sync(RunRecord.read, record)) and run.exit_status is None:  # noqa: ASYNC110
                await anyio.sleep(_POLL_SECONDS)


def uptime_seconds(run: RunRecord) -> float:
    """How long the run has lasted."""
    return (datetime.now(UTC) - run.started).total_seconds()
