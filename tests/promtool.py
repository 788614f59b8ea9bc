"""promtool, Prometheus' own checker, for tests that hold what we expose and what we alert on against it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

PROMTOOL = shutil.which("promtool")
"""The program on PATH (the Debian package `prometheus` has it), None where it is not installed."""

needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed: apt-get install prometheus")
"""Mark of the tests that call `promtool`."""


def promtool(*arguments: str, text: str = "", directory: Path | None = None) -> tuple[int, str]:
    """What `promtool <arguments>` answers to `text` on its standard input: the exit code and all that it printed.

    `directory` is where it runs: rule tests name their rule files relative to it.
    """
    assert PROMTOOL is not None, "mark the test with needs_promtool"
    done = subprocess.run(
        [PROMTOOL, *arguments],
        input=text,
        capture_output=True,
        text=True,
        cwd=directory,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr
