"""The servers that demos start from the command line."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from packages.initializers.tests.servers import hub_server, s3_server
from trainer.cli.processes.parent_death import ending_with_parent

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

    from packages.initializers.tests.conftest import Initializer

each_server = pytest.mark.parametrize("server", [hub_server, s3_server])


@contextmanager
def running(module: str, *arguments: str, **environ: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server in a process of its own, and its URL."""
    command = [sys.executable, "-m", f"packages.initializers.tests.servers.{module}", *arguments]
    with subprocess.Popen(
        ending_with_parent(command), env=os.environ | environ, text=True, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip(), process
        finally:
            process.kill()


def test_gated_repository(initializer: Initializer, tmp_path: Path) -> None:
    """With a token in its environment, the Hub serves a directory to clients with this token; SIGTERM ends it."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    with running("hub_server", f"models/me/base={tmp_path}/model", ACCESS_TOKEN="hf_right") as (url, process):
        assert url.startswith("http://127.0.0.1:")
        assert initializer.run("hf://me/base", "model", HF_ENDPOINT=url) == 2
        assert "the model me/base is gated" in initializer.message
        assert initializer.run("hf://me/base", "model", HF_ENDPOINT=url, ACCESS_TOKEN="hf_right") == 0
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    assert initializer.fetched() == {"config.json": b"{}"}


@pytest.mark.skipif(not s3_server.LIBRARIES.is_dir(), reason="moto is not installed: make .venv/.s3-server")
def test_bucket(initializer: Initializer, tmp_path: Path) -> None:
    """A directory is a bucket; SIGTERM ends the server."""
    (tmp_path / "data" / "set").mkdir(parents=True)
    (tmp_path / "data" / "set" / "a.json").write_text("{}")
    with running("s3_server", f"data={tmp_path}/data") as (url, process):
        keys = {"ACCESS_KEY_ID": "test-access", "SECRET_ACCESS_KEY": "test-secret", "REGION": "us-east-1"}
        assert initializer.run("s3://data/set", ENDPOINT=url, **keys) == 0, initializer.message
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    assert initializer.fetched() == {"a.json": b"{}"}


@each_server
def test_directory_that_is_not_there(server: ModuleType, tmp_path: Path) -> None:
    """A wrong directory is named, with the form of the argument."""
    problem = f"error: data={tmp_path}/none: there is no such directory: write "
    with pytest.raises(SystemExit, match=re.escape(problem)):
        server.main([f"data={tmp_path}/none"])


@each_server
def test_port_that_is_taken(server: ModuleType, capfd: pytest.CaptureFixture[str]) -> None:
    """A port that somebody else listens on is named in one line."""
    if server is s3_server and not s3_server.LIBRARIES.is_dir():
        pytest.skip("moto is not installed: make .venv/.s3-server")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with running(server.__name__.rpartition(".")[2], f"--port={port}") as (url, process):
            assert url == ""
            assert process.wait(20) == 1
    problem = "Address already in use: choose another --port"
    assert capfd.readouterr().err == f"error: cannot listen on 127.0.0.1:{port}: {problem}\n"


def test_moto_that_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without moto, the message says what installs it."""
    monkeypatch.setattr(s3_server, "LIBRARIES", tmp_path / "none")
    with pytest.raises(SystemExit, match=r"there is no moto in .*/none, .* make .venv/.s3-server installs it"):
        s3_server.main([])
