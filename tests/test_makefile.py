from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_the_demo_shows_what_it_installs() -> None:
    """It downloads for a minute or more: pip says meanwhile what it does."""
    command = ["make", "--dry-run", "--always-make", "demo"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    (install,) = (line for line in done.stdout.splitlines() if "pip install" in line)
    assert "examples-jax" in install
    assert "--quiet" not in install
