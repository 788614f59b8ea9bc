"""The processes that `trainer up` keeps running."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import anyio
import pytest
from anyio.to_thread import run_sync

from trainer.cli.errors import CommandError
from trainer.cli.processes.background import BackgroundProcess
from trainer.cli.processes.state_directory import StateDirectory
from trainer.cli.processes.supervisor import ProcessIdentity, RunRecord

SERVER = [sys.executable, "-c", "import time; print('it is ready', flush=True); time.sleep(60)"]


def has_said(server: BackgroundProcess) -> Callable[[], Awaitable[bool]]:
    """Whether the process has written that it is ready."""
    return partial(run_sync, server.log.has, "it is ready")


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[BackgroundProcess]:
    state = StateDirectory(tmp_path / "state")
    state.create()
    process = BackgroundProcess("server", state)
    yield process
    await process.stop()


async def test_start_and_stop(server: BackgroundProcess) -> None:
    """A process is known while it runs, and forgotten after it was stopped; stopping twice is harmless."""
    assert server.running() is None

    run = await server.start(SERVER, has_said(server))
    assert server.running() == run
    assert server.crash() is None

    assert await server.stop()
    assert server.running() is None
    assert server.crash() is None
    assert not await server.stop()


async def test_crash_is_known(server: BackgroundProcess) -> None:
    """A process that was killed by somebody else is remembered as crashed, with the way it ended."""
    run = await server.start(SERVER, has_said(server))

    os.kill(run.process.pid, signal.SIGKILL)

    with anyio.fail_after(20):
        while server.crash() != "was ended by SIGKILL":  # noqa: ASYNC110 - the supervisor writes it
            await anyio.sleep(0.01)
    assert server.running() is None


async def test_failure_to_start(server: BackgroundProcess, capsys: pytest.CaptureFixture[str]) -> None:
    """A process that ends before it is ready is reported with the end of its log."""
    with pytest.raises(CommandError, match="the server exited with code 7"):
        await server.start([sys.executable, "-c", "print('no port'); raise SystemExit(7)"], has_said(server))

    assert "no port" in capsys.readouterr().err
    assert server.crash() == "exited with code 7"


async def test_last_log_is_kept(server: BackgroundProcess) -> None:
    """A new run begins a new log and keeps the one before, which may tell why it ended."""
    server.log.path.write_text("it is ready\nlast words\n")

    await server.start(SERVER, has_said(server))

    assert server.log.tail() == ["it is ready"]
    assert server.log.path.with_name("server.log.1").read_text().endswith("last words\n")


@pytest.mark.parametrize(
    ("boot_id", "crash"),
    [
        pytest.param(None, "ended without leaving an exit code", id="killed with its supervisor"),
        pytest.param("an earlier boot", "ended when the machine was restarted", id="restart"),
    ],
)
def test_end_that_nobody_saw(tmp_path: Path, boot_id: str | None, crash: str) -> None:
    """A process that vanished is a crash even without a record of how it ended."""
    state = StateDirectory(tmp_path)
    this = ProcessIdentity.of(os.getpid())
    assert this is not None
    gone = replace(this, start_time=1, boot_id=boot_id or this.boot_id)
    RunRecord(gone, datetime.now(UTC) - timedelta(minutes=1)).write(state.record("server"))

    assert BackgroundProcess("server", state).crash() == crash


def test_end_of_which_the_supervisor_has_yet_to_tell(tmp_path: Path) -> None:
    """Between the end of the process and the last word of its supervisor nothing is said."""
    state = StateDirectory(tmp_path)
    this = ProcessIdentity.of(os.getpid())
    assert this is not None
    gone = replace(this, start_time=1)
    run = RunRecord(gone, datetime.now(UTC), supervisor=this)
    run.write(state.record("server"))
    assert BackgroundProcess("server", state).crash() is None

    replace(run, exit_status=7).write(state.record("server"))
    assert BackgroundProcess("server", state).crash() == "exited with code 7"

    replace(run, supervisor=gone).write(state.record("server"))
    assert BackgroundProcess("server", state).crash() == "ended without leaving an exit code"


async def test_interrupted_start(server: BackgroundProcess) -> None:
    """Who is interrupted while a process starts leaves one that the next command finds, and can wait for."""
    with anyio.CancelScope() as scope:
        scope.cancel()
        await server.start(SERVER, has_said(server))
    if server.running() is None:  # it was interrupted before there was a process
        await server.start(SERVER, has_said(server))

    await server.wait_until_ready(has_said(server))
    assert server.running() is not None


async def test_interrupted_stop(server: BackgroundProcess) -> None:
    """A process that ends after an interrupted stop has not crashed; the next stop forgets it."""
    await server.start(SERVER, has_said(server))
    with anyio.CancelScope() as scope:
        scope.cancel()
        await server.stop()
    server.state.stopping("server").touch()  # as an interruption a moment later leaves it
    assert server.is_stopping()
    assert server.crash() is None

    await server.stop()

    assert not server.is_stopping()
    assert server.running() is None
    assert not server.record_exists()
