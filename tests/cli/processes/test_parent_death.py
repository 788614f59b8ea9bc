"""Commands that do not outlive their parent."""

from __future__ import annotations

import subprocess
import sys

import anyio

from trainer.cli.processes.parent_death import ending_with_parent
from trainer.cli.processes.supervisor import ProcessIdentity

CHILD = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
PARENT = f"""
import subprocess, sys, time
from trainer.cli.processes.parent_death import ending_with_parent
child = subprocess.Popen(ending_with_parent([sys.executable, "-c", {CHILD!r}]))
time.sleep(60)
"""


async def test_child_ends_with_its_parent() -> None:
    """The child is stopped even when its parent is killed by SIGKILL."""
    async with await anyio.open_process([sys.executable, "-c", PARENT]) as parent:
        assert parent.stdout is not None
        child = ProcessIdentity.of(int(await parent.stdout.receive()))
        assert child is not None
        parent.kill()
    with anyio.fail_after(20):
        while child.is_running():  # noqa: ASYNC110 - another process ends it
            await anyio.sleep(0.01)


def test_command_keeps_pid_and_exit_code() -> None:
    """The command replaces the watch in its process: its exit code is seen by the parent."""
    assert (
        subprocess.run(ending_with_parent([sys.executable, "-c", "raise SystemExit(7)"]), check=False).returncode == 7
    )
