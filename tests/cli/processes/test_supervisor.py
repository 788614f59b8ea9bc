"""Commands in the background and the records they leave."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from trainer.cli.errors import CommandError
from trainer.cli.processes import supervisor
from trainer.cli.processes.background import start_supervised
from trainer.cli.processes.supervisor import RunRecord


async def wait_for_end(record: Path) -> RunRecord:
    with anyio.fail_after(20):
        while True:
            run = RunRecord.read(record)
            if run is not None and run.exit_status is not None:
                return run
            await anyio.sleep(0.01)


async def start(directory: Path, program: str) -> RunRecord:
    return await start_command(directory, sys.executable, "-c", program)


async def start_command(directory: Path, *command: str) -> RunRecord:
    return await start_supervised(list(command), record=directory / "run.json", log=directory / "run.log")


async def test_command_that_ends_at_once(tmp_path: Path) -> None:
    """A command that has ended before anybody looks leaves the same record as one that runs for long."""
    for _ in range(3):
        started = await start_command(tmp_path, "/bin/sh", "-c", "exit 3")

        ended = await wait_for_end(tmp_path / "run.json")

        assert (ended.process, ended.exit_status) == (started.process, 3)
        assert not ended.process.is_running()


async def test_command_runs_detached(tmp_path: Path) -> None:
    """The command runs in another session, with its output in the log, and is the process of the record."""
    program = (
        "import os, sys; print(os.getpid(), os.getsid(0), flush=True); print('oops', file=sys.stderr); sys.stdin.read()"
    )
    started = await start(tmp_path, program)

    await wait_for_end(tmp_path / "run.json")

    numbers, complaint = (tmp_path / "run.log").read_text().splitlines()
    pid, session = map(int, numbers.split())
    assert pid == started.process.pid
    assert session != os.getsid(0)
    assert complaint == "oops"


async def test_command_that_cannot_start(tmp_path: Path) -> None:
    """A command that does not exist is reported at once, and an older record does not hide it."""
    (tmp_path / "run.json").write_text("{}")

    with pytest.raises(CommandError, match="No such file"):
        await start_supervised(["/no/such/program"], record=tmp_path / "run.json", log=tmp_path / "run.log")

    assert RunRecord.read(tmp_path / "run.json") is None


@pytest.mark.parametrize(
    "content", [pytest.param("", id="empty"), pytest.param("[]", id="list"), pytest.param("{}", id="object")]
)
def test_damaged_record_is_none(tmp_path: Path, content: str) -> None:
    """A file that is not a record counts as no record."""
    (tmp_path / "run.json").write_text(content)

    assert RunRecord.read(tmp_path / "run.json") is None


def test_supervisor_is_small() -> None:
    """It stays in memory as long as its command, and so loads nothing that is not of the standard library."""
    program = "import runpy, sys; runpy.run_path(sys.argv[1]); print(*{name.partition('.')[0] for name in sys.modules})"
    command = [sys.executable, "-P", "-S", "-c", program, supervisor.__file__]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert not {*loaded} - sys.stdlib_module_names - {"__main__"}
