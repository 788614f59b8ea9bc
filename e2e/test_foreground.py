"""`trainer cluster` and `trainer manager` in the foreground."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from e2e.kubectl import BIN
from e2e.processes import Process


@pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="about the dev cluster")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_cluster_stops_on_signals(number: int, tmp_path: Path) -> None:
    """It tells where it serves in one line, and ends with exit code 0 when it is asked to."""
    kubeconfig = tmp_path / "kc"
    command = [str(BIN / "trainer"), "cluster", "--data-dir", str(tmp_path / "data"), "--kubeconfig", str(kubeconfig)]
    process = Process(command, tmp_path / "log")
    process.start(ready="cluster ready: ")

    process.send(number)

    assert process.wait() == 0
    ready = re.compile(
        rf"^cluster ready: https://127\.0\.0\.1:\d+ kubeconfig={re.escape(str(kubeconfig))}$", re.MULTILINE
    )
    assert ready.search(process.output())
    assert kubeconfig.stat().st_mode & 0o777 == 0o600


def test_manager_without_cluster(tmp_path: Path) -> None:
    """A manager that finds no configuration says so in one line."""
    process = Process(
        [str(BIN / "trainer"), "manager"],
        tmp_path / "log",
        {"HOME": str(tmp_path), "KUBECONFIG": "", "KUBERNETES_SERVICE_HOST": ""},
    )
    process.start(ready="error: no kubeconfig")

    assert process.wait() == 2
    assert process.output().count("\n") == 1
