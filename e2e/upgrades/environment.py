"""A virtual environment whose distributions are upgraded and downgraded, and who uses it."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from e2e.home import Home
from e2e.upgrades.released import ROOT, Release

_SECONDS = 900


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment that begins with a release."""

    bin: Path
    release: Release
    wheels: Path
    """Of the tree."""

    def home(self, state: Path) -> Home:
        """A user whose `trainer` is that of the environment."""
        state.mkdir()
        return Home(state, self.bin, state)

    def pip(self, *arguments: str, tree: bool) -> subprocess.CompletedProcess[str]:
        """Run `pip install` with the wheels of both versions, and what the tree or the release was tested with."""
        constraints = ROOT / "constraints.txt" if tree else self.release.constraints
        sources: tuple[str | Path, ...] = (
            "--find-links",
            self.wheels,
            "--find-links",
            self.release.wheels,
            "--constraint",
            constraints,
        )
        command: list[str | Path] = [self.bin / "python", "-m", "pip", "install", *sources, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)

    def install(self, *requirements: str, tree: bool) -> str:
        """Install them; returns what pip says of conflicts."""
        result = self.pip("--quiet", *requirements, tree=tree)
        assert result.returncode == 0, result.stderr
        return result.stderr
