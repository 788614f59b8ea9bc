"""Commands as the user of our images."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

USER = 65532
"""The number in the Dockerfiles."""
AS_USER = [
    *("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--no-new-privs"),
    # To read Python and the installation, which are in directories of root here; it may write what is its own only.
    *(f"--{kind}=-all,+dac_read_search" for kind in ("inh-caps", "ambient-caps", "bounding-set")),
]


def skip_unless_root() -> None:
    """Skip a test that needs to become another user."""
    if os.geteuid() or shutil.which("setpriv") is None:
        pytest.skip("only root can run a program as another user, with setpriv of util-linux")


def own(directory: Path) -> Path:
    """Make a directory that belongs to the user."""
    directory.mkdir(parents=True)
    os.chown(directory, USER, USER)
    return directory


def run_as_user(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command from / with these variables and no others."""
    return subprocess.run(
        [*AS_USER, *command], cwd="/", env=environment, capture_output=True, text=True, timeout=240, check=False
    )
