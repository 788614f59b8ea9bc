"""The wheels of a tree."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from hack.release.source import distributions

BESIDE = "devcluster"
"""The folder of another distribution in 0.1.0, which has no packages/."""
_SECONDS = 900


def build_wheels(tree: Path, directory: Path) -> Path:
    """Build the wheels of all distributions of a tree in a directory, which is made where it is missing."""
    folders = (*distributions(tree), *(path.parent for path in tree.glob(f"{BESIDE}/pyproject.toml")))
    options = ("--quiet", "--no-deps", "--wheel-dir", directory)
    command: list[str | Path] = [sys.executable, "-m", "pip", "wheel", *options, *folders]
    subprocess.run(command, check=True, timeout=_SECONDS)
    return directory
