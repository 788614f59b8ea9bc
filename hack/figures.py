"""Count the Python of this repository, and the CPU that its command takes to start.

    python -m hack.figures

Lines are those of the files that git tracks. CPU is that of a whole process, the least of five runs: other work on the
machine only adds to it.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
COUNTED = {
    "wheel trainer-operator": r"trainer/",
    "product without the dev cluster": r"trainer/|packages/(?!devcluster/)[^/]+/src/",
    "dev cluster": r"packages/devcluster/src/",
    "tests of all kinds": r"tests/|packages/[^/]+/tests/|e2e/",
    "end-to-end tests": r"e2e/",
    "everything": r"",
}
"""The paths of each figure, as regular expressions that match at the beginning."""
COMMANDS = (["--help"], ["lint", "--file", "examples/jax-digits/trainjob.yaml"])
_RUNS = 5


def main() -> None:
    """Print the figures, one on each line."""
    lines = lines_of(ROOT)
    for name, paths in COUNTED.items():
        counted = [number for path, number in lines.items() if re.match(paths, path)]
        sys.stdout.write(f"{name:40}{sum(counted):>8,} lines in {len(counted):,} files\n")
    e2e = [number for path, number in lines.items() if re.match(r"e2e/(.*/)?test_[^/]*$", path)]
    sys.stdout.write(f"{'median file of end-to-end tests':40}{statistics.median(e2e):>8,.0f} lines\n")
    for arguments in COMMANDS:
        command = [sys.executable, "-m", "trainer.cli", *arguments]
        seconds = min(_cpu_seconds(command) for _ in range(_RUNS))
        sys.stdout.write(f"{f'CPU of trainer {arguments[0]}':40}{seconds:>8.2f} s\n")


def lines_of(root: Path) -> dict[str, int]:
    """Count the lines of each tracked Python file by its path."""
    listed = subprocess.run(["git", "ls-files", "-z", "*.py"], cwd=root, capture_output=True, check=True, text=True)
    files = [path for path in listed.stdout.split("\0") if path and (root / path).is_file()]
    return {path: (root / path).read_bytes().count(b"\n") for path in files}


def _cpu_seconds(command: list[str]) -> float:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = os.times()
    subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


if __name__ == "__main__":
    main()
