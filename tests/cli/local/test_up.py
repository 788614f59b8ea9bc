"""The address that a cluster keeps."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from trainer.cli.errors import CommandError
from trainer.cli.local.up import kept_port, require_free
from trainer.cli.processes.state_directory import StateDirectory


@pytest.mark.parametrize(
    ("text", "port"),
    [
        pytest.param("clusters: [{cluster: {server: 'https://127.0.0.1:4567'}}]", 4567, id="started before"),
        pytest.param(None, 0, id="never started"),
        pytest.param("", 0, id="empty"),
        pytest.param("clusters: []", 0, id="no cluster"),
        pytest.param("clusters: [{cluster: {server: 'https://127.0.0.1:x'}}]", 0, id="no port"),
        pytest.param("{", 0, id="no YAML"),
    ],
)
def test_kept_port(tmp_path: Path, text: str | None, port: int) -> None:
    """A cluster starts at the port of its kubeconfig again, and at any free one where that has none."""
    kubeconfig = tmp_path / "kubeconfig"
    if text is not None:
        kubeconfig.write_text(text)

    assert kept_port(kubeconfig) == port


def test_port_of_another_process(tmp_path: Path) -> None:
    """A port that another process has is named, with what to do."""
    state = StateDirectory(tmp_path, "b")
    require_free(0, state)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            CommandError, match=rf"port {port} of this cluster is taken by another .* trainer up --name b --port 0"
        ):
            require_free(port, state)
