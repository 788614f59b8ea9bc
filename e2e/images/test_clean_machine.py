"""Machines on which strangers install what is released."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from e2e.processes import with_argument
from e2e.waiting import until
from hack.images import ImageError, clean_machine, debian

pytestmark = pytest.mark.timeout(600)


def test_nothing_is_left(tmp_path: Path) -> None:
    """What it writes and starts ends with it; it only reads what it is given, and has nothing of this environment."""
    (tmp_path / "given").write_text("a")
    before = {path.name for path in (debian() / "root").iterdir()}
    marker = str(os.getpid() + 1_000_000)
    with clean_machine(mounts={tmp_path: "/mnt/dist"}) as machine:
        assert machine.run("cat", "/mnt/dist/given").stdout == "a"
        with pytest.raises(ImageError, match="Read-only file system"):
            machine.run("touch", "/mnt/dist/made")
        machine.run("sh", "-c", f"echo b >made; sleep {marker} >/dev/null 2>&1 &")
        assert (machine.changes / "root" / "made").read_text() == "b\n"
        until(lambda: with_argument(marker), "it runs in the background")
        assert set(machine.run("printenv").stdout.splitlines()) >= {"HOME=/root", "LANG=C.UTF-8"}
        assert "VIRTUAL_ENV" not in machine.run("printenv").stdout
        assert machine.run("python3", "-c", "import trainer", check=False).returncode == 1
        machine.run("su", "nobody", "--shell=/bin/sh", "--command=unshare --user --map-root-user --mount true")
        changes = machine.changes
    until(lambda: not with_argument(marker), "it has ended")
    assert not changes.exists()
    assert {path.name for path in (debian() / "root").iterdir()} == before
