"""The release that upgrades start from: its files, its wheels, and environments in which they are installed.

All of it is made once for each commit and interpreter, below `${XDG_CACHE_HOME:-~/.cache}/trainer-ci/released`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e.upgrades.wheels import build_wheels
from hack.cache import cache_directory, locked
from hack.release.notes import dated
from hack.release.versions import current, former

ROOT = Path(__file__).parents[2]
UNTAGGED = {"0.1.0": "dd2b5aa20cf7a3bffc4c2cae19b11d1c207d668a"}
"""The commits of releases that were made before this repository had tags."""
_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Release:
    """A released version."""

    version: str
    directory: Path

    @property
    def tree(self) -> Path:
        """The files of its commit."""
        return self.directory / "tree"

    @property
    def config(self) -> Path:
        """Its manifests."""
        return self.tree / "config"

    @property
    def constraints(self) -> Path:
        """The versions that it was tested with, for pip."""
        return self.tree / "constraints.txt"

    @property
    def wheels(self) -> Path:
        """The folder of all its distributions, for pip's `--find-links`."""
        return self.directory / "wheels"

    @property
    def bin(self) -> Path:
        """The programs of an environment that all tests share, and that none may change."""
        return self.directory / "environment/bin"

    def install(self, environment: Path, *extras: str) -> Path:
        """Make a new environment with this release; returns the folder of its programs.

        Args:
            environment: the folder to make.
            extras: of trainer-operator. Default: the control plane alone.
        """
        subprocess.run([sys.executable, "-m", "venv", environment], check=True, timeout=_SECONDS)
        requirement = f"trainer-operator[{','.join(extras)}]=={self.version}"
        sources = ("--constraint", self.constraints, "--find-links", self.wheels)
        program = environment / "bin/python"
        command: list[str | Path] = [program, "-m", "pip", "install", "--quiet", *sources, requirement]
        subprocess.run(command, check=True, timeout=_SECONDS)
        return environment / "bin"


def released() -> Release:
    """The newest release of the minor version before the tree's, with wheels and the shared environment.

    CHANGELOG.md says which it is, so that a new minor version is tested with the one before. The environment has the
    extra `cluster`. The test is skipped where the clone has no tag of the release, or is too shallow to have its
    commit; with COMPLETE set, as in workflows, it fails.
    """
    version = former(current(), dated((ROOT / "CHANGELOG.md").read_text("utf-8")))
    commit = _commit(version)
    interpreter = f"python{sys.version_info.major}.{sys.version_info.minor}"
    release = Release(version, cache_directory() / "released" / f"{version}-{commit[:12]}-{interpreter}")
    with locked(release.directory):
        release.directory.mkdir(exist_ok=True)
        _once(release.tree, lambda: _unpack(commit, release.tree))
        _once(release.wheels, lambda: build_wheels(release.tree, release.wheels))
        _once(release.bin.parent, lambda: release.install(release.bin.parent, "cluster"))
    return release


def _commit(version: str) -> str:
    for name in filter(None, (f"refs/tags/v{version}", UNTAGGED.get(version))):
        command = ["git", "-C", str(ROOT), "rev-parse", "--quiet", "--verify", f"{name}^{{commit}}"]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        if answer.returncode == 0:
            return answer.stdout.strip()
    give_up = pytest.fail if os.environ.get("COMPLETE") else pytest.skip
    return give_up(
        f"upgrades are tested from {version}, which CHANGELOG.md names, and this clone has no tag v{version}: "
        "git fetch --tags, with --unshallow in a shallow clone"
    )


def _once(directory: Path, make: Callable[[], object]) -> None:
    """Make a directory, unless it is there as a whole; an environment cannot be renamed, hence the mark."""
    mark = directory.with_suffix(".made")
    if mark.exists():
        return
    shutil.rmtree(directory, ignore_errors=True)
    make()
    mark.touch()


def _unpack(commit: str, directory: Path) -> None:
    directory.mkdir()
    archive = subprocess.run(["git", "-C", ROOT, "archive", commit], capture_output=True, check=True, timeout=_SECONDS)
    subprocess.run(["tar", "-x", "-C", directory], input=archive.stdout, check=True, timeout=_SECONDS)
