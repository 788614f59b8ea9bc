"""Processes that live as long as a part of a command."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import anyio
import pytest
from anyio.to_thread import run_sync

from trainer.cli.errors import CommandError
from trainer.cli.processes.child import child_process
from trainer.cli.processes.log_file import LogFile
from trainer.cli.processes.supervisor import ProcessIdentity

OBEDIENT = "import os, time; print('pid', os.getpid()); print('ready', flush=True); time.sleep(60)"


def python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


def has_said(log: Path) -> Callable[[], Awaitable[bool]]:
    """Whether the process has written that it is ready."""
    return partial(run_sync, LogFile(log).has, "ready")


def only_error(group: pytest.ExceptionInfo[ExceptionGroup[Exception]]) -> Exception:
    error: Exception = group.value
    while isinstance(error, ExceptionGroup):
        (error,) = error.exceptions
    return error


async def test_runs_while_the_body_runs(tmp_path: Path) -> None:
    """The body runs once the process is ready, and the process is gone when the body has ended."""
    log = tmp_path / "log"
    async with child_process("server", python(OBEDIENT), log, has_said(log)):
        child = ProcessIdentity.of(int(log.read_text().split()[1]))
        assert child is not None

    assert not child.is_running()


async def test_cancelled_body(tmp_path: Path) -> None:
    """A cancelled body leaves no process."""
    log = tmp_path / "log"
    with anyio.CancelScope() as scope:
        async with child_process("server", python(OBEDIENT), log, has_said(log)):
            child = ProcessIdentity.of(int(log.read_text().split()[1]))
            scope.cancel()
            await anyio.sleep_forever()

    assert child is not None
    assert not child.is_running()


async def test_process_that_does_not_get_ready(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A process that ends at once is reported with its exit code and the end of its log; the body never runs."""
    program = "print('bad luck'); raise SystemExit(3)"

    with pytest.raises(CommandError, match="the server exited with code 3"):
        async with child_process("server", python(program), tmp_path / "log", has_said(tmp_path / "log")):
            pytest.fail("not ready")

    assert "bad luck" in capsys.readouterr().err


async def test_process_that_ends_too_early(tmp_path: Path) -> None:
    """When the process ends in the middle, the body is cancelled and the end is reported."""
    log = tmp_path / "log"

    async def body() -> None:
        async with child_process("server", python(OBEDIENT), log, has_said(log)):
            os.kill(int(log.read_text().split()[1]), signal.SIGKILL)
            with anyio.fail_after(20):
                await anyio.sleep_forever()

    with pytest.raises(ExceptionGroup) as caught:
        await body()

    error = only_error(caught)
    assert isinstance(error, CommandError)
    assert str(error) == "the server was ended by SIGKILL"
