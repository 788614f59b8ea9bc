"""What `trainer up` keeps: its state directory and its background processes."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.to_thread import run_sync

from trainer.cli.errors import CommandError
from trainer.cli.processes.log_file import LogFile
from trainer.cli.processes.process import boot_id, describe_exit, stop_process
from trainer.cli.processes.supervisor import RunRecord, start_supervised

_LOCK_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class StateDirectory:
    """The directory of one user's background cluster."""

    root: Path

    @classmethod
    def of_user(cls) -> StateDirectory:
        """`$XDG_STATE_HOME/trainer`, by default `~/.local/state/trainer` (XDG Base Directory Specification)."""
        state_home = os.environ.get("XDG_STATE_HOME", "")
        # The specification says to ignore relative paths.
        base = Path(state_home) if state_home.startswith("/") else _home() / ".local" / "state"
        return cls(base / "trainer")

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig of an administrator of the dev cluster."""
        return self.root / "kubeconfig"

    @property
    def manager_kubeconfig(self) -> Path:
        """Kubeconfig of the controller manager."""
        return self.root / "manager.kubeconfig"

    @property
    def manager_configuration(self) -> Path:
        """Configuration file of the controller manager."""
        return self.root / "manager.yaml"

    @property
    def data(self) -> Path:
        """The directory of the dev cluster's data: objects, pod volumes and container logs."""
        return self.root / "data"

    def record(self, name: str) -> Path:
        """The run record of a background process."""
        return self.root / f"{name}.json"

    def log(self, name: str) -> Path:
        """Standard output and error of a background process."""
        return self.root / f"{name}.log"

    def stopping(self, name: str) -> Path:
        """Exists from the moment at which `trainer` begins to stop a background process until it has done so."""
        return self.root / f"{name}.stopping"

    def create(self) -> None:
        """Create the directory, readable by its owner only."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)

    def delete_data(self) -> None:
        """Delete the data of the dev cluster; blocks. Interrupted, it leaves no half of the data to the next start."""
        doomed = self.data.with_name(f"{self.data.name}.deleted")
        try:
            if doomed.exists():
                shutil.rmtree(doomed)
            self.data.rename(doomed)
            shutil.rmtree(doomed)
        except FileNotFoundError:
            return
        except OSError as error:
            raise CommandError(f"cannot delete {error.filename}: {error.strerror}") from error

    @contextmanager
    def lock(self, *, timeout_seconds: float = 120) -> Iterator[None]:
        """Lock the directory against other commands that change it, after waiting for them; blocks the thread."""
        self.create()
        deadline = time.monotonic() + timeout_seconds
        with (self.root / "lock").open("w") as file:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() >= deadline:
                        message = f"another `trainer up` or `trainer down` is changing {self.root}; try again later"
                        raise CommandError(message) from None
                    time.sleep(_LOCK_POLL_SECONDS)
            yield


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # a user without an entry in passwd, as in containers
        return Path("/")


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
