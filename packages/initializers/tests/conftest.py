from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from packages.initializers.tests.servers import RangeServer
from trainer_initializers.__main__ import main

PYTHON = sys.executable


@dataclass
class Initializer:
    """Runs the program as its image does, with the environment of a container."""

    directory: Path
    environ: dict[str, str] = field(default_factory=dict)
    waits: list[float] = field(default_factory=list)

    @property
    def target(self) -> Path:
        return self.directory / "workspace" / "dataset"

    @property
    def message(self) -> str:
        path = self.directory / "termination-log"
        return path.read_text() if path.exists() else ""

    def variables(self, uri: str, **environ: str) -> dict[str, str]:
        return {
            "STORAGE_URI": uri,
            "TRANSFER_PATH": str(self.target),
            "TERMINATION_MESSAGE_PATH": str(self.directory / "termination-log"),
            "TRANSFER_RETRY_SECONDS": "0",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            **self.environ,
            **environ,
        }

    def run(self, uri: str, command: str = "dataset", **environ: str) -> int:
        return main([command], self.variables(uri, **environ), self.waits.append)

    def fetched(self) -> dict[str, bytes]:
        return contents(self.target)


def contents(directory: Path) -> dict[str, bytes]:
    """The files below a directory, without those of initializers."""
    found = {path.relative_to(directory).as_posix(): path for path in directory.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in sorted(found.items()) if not name.startswith(".")}


@pytest.fixture
def initializer(tmp_path: Path) -> Initializer:
    return Initializer(tmp_path)


@pytest.fixture
def server() -> Iterator[RangeServer]:
    with RangeServer() as running:
        yield running


@pytest.fixture
def serve() -> Iterator[Callable[..., RangeServer]]:
    """Starts servers with options."""
    running: list[RangeServer] = []

    def start(*, is_ranged: bool = True, tells_size: bool = True) -> RangeServer:
        running.append(RangeServer(is_ranged=is_ranged, tells_size=tells_size).__enter__())
        return running[-1]

    yield start
    for each in running:
        each.__exit__()
