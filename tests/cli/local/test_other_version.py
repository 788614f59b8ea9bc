"""Processes that another version of `trainer` has started."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import pytest
from anyio.to_thread import run_sync

import trainer
from trainer.cli.local import other_version
from trainer.cli.local.dev_cluster import PROCESSES
from trainer.cli.local.other_version import stop_other_versions
from trainer.cli.processes.background import BackgroundProcess, version_problem
from trainer.cli.processes.state_directory import StateDirectory
from trainer.kube.errors import KubeError

FORMER = "0.1"


def program(name: str) -> list[str]:
    return [sys.executable, "-c", f"import time; print('{name} is ready', flush=True); time.sleep(60)"]


@pytest.fixture
async def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[StateDirectory]:
    """A cluster with a manager and a recorder, all of this version."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    state = StateDirectory.of_user()
    state.create()
    async with AsyncExitStack() as stack:
        for name in PROCESSES:
            process = BackgroundProcess(name, state)
            stack.push_async_callback(process.stop)
            await process.start(program(name), partial(run_sync, process.log.has, f"{name} is ready"))
        yield state


def started_by(state: StateDirectory, version: str, *names: str) -> None:
    """Write the records of processes as another version of `trainer` has: 0.1 notes none."""
    for name in names:
        record = json.loads(state.record(name).read_text())
        assert record.pop("version") == trainer.__version__
        state.record(name).write_text(json.dumps(record | ({} if version == FORMER else {"version": version})))


def running(state: StateDirectory) -> list[str]:
    return [name for name in PROCESSES if BackgroundProcess(name, state).running() is not None]


async def test_this_version_goes_on(state: StateDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    """What this version has started is left alone."""
    await stop_other_versions(state)

    assert running(state) == [*PROCESSES]
    assert (version_problem(state), capsys.readouterr().out) == ("", "")


@pytest.mark.parametrize("version", [FORMER, "0.3.0"])
async def test_manager_is_replaced(state: StateDirectory, capsys: pytest.CaptureFixture[str], version: str) -> None:
    """A manager of another version is stopped, and what else this version has started goes on."""
    started_by(state, version, "manager")

    await stop_other_versions(state)

    assert running(state) == ["cluster", "recorder"]
    assert capsys.readouterr().out == f"the manager was started by trainer {version}; starting it again\n"


async def test_idle_cluster_is_replaced(state: StateDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    """A cluster on which nothing is trained is stopped with all that talk to it."""
    started_by(state, FORMER, "cluster", "manager")

    await stop_other_versions(state)

    assert not running(state)
    assert "the cluster was started by trainer 0.1; starting it again\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("trained", "reason"),
    [
        pytest.param(["a/b (Running)"], "it trains a/b (Running)\n", id="one"),
        pytest.param(["a/b (Running)", "c/d (Pending)"], "it trains a/b (Running), and 1 more\n", id="two"),
        pytest.param(KubeError("no answer within 5 s"), "cannot be seen (no answer within 5 s)\n", id="no answer"),
    ],
)
async def test_cluster_that_trains_goes_on(
    state: StateDirectory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    trained: list[str] | KubeError,
    reason: str,
) -> None:
    """No training ends by an upgrade; the manager, which holds none, is replaced."""
    started_by(state, FORMER, "cluster", "manager")

    async def running_trainings(_: StateDirectory) -> list[str]:
        if isinstance(trained, KubeError):
            raise trained
        return trained

    monkeypatch.setattr(other_version, "running_trainings", running_trainings)

    await stop_other_versions(state)

    assert running(state) == ["cluster", "recorder"]
    assert capsys.readouterr().err.endswith(reason)


async def test_replaced_files(state: StateDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster of the same environment has lost its programs; one of another environment has them still."""
    started_by(state, FORMER, "cluster")
    assert "whose files this version has replaced" in version_problem(state)

    monkeypatch.setattr(sys, "executable", "/another/bin/python")

    assert version_problem(state) == (
        "the cluster was started by trainer 0.1: trainer down and trainer up start it anew"
    )
