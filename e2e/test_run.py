"""`trainer run` on a cluster."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import yaml

from e2e.cluster import Cluster, train_job
from e2e.kubectl import BIN
from e2e.processes import Process

STEPS = "import os, time\nfor i in range(3):\n    print('step', i)\n    time.sleep(0.5)\nprint('test accuracy: 99.0 %')"
SLEEP = "import time; print('started'); time.sleep(60)"


def write(directory: Path, *objects: dict[str, Any]) -> str:
    file = directory / "job.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    return str(file)


def test_complete(cluster: Cluster, tmp_path: Path) -> None:
    """Every line of every node is shown once, then the end; exit code 0."""
    result = cluster.trainer("run", "-f", write(tmp_path, train_job("demo", STEPS, nodes=2)))

    assert result.returncode == 0
    assert [line.partition(":")[0] for line in result.stderr.splitlines()] == ["warning"], (
        "nodes do not know each other"
    )
    lines = result.stdout.splitlines()
    assert lines[0] == "trainjob.trainer.kubeflow.org/demo created"
    for node in ("node-0", "node-1"):
        own = [line.removeprefix(f"{node} | ") for line in lines if line.startswith(node)]
        assert own == ["step 0", "step 1", "step 2", "test accuracy: 99.0 %"]
    assert "demo  Running" in lines
    assert lines[-1].startswith("demo  Complete  after ")


def test_interrupt(cluster: Cluster, tmp_path: Path) -> None:
    """Ctrl-C ends the following with exit code 130 and leaves the job running, which can be attached to."""
    file = write(tmp_path, train_job("demo", SLEEP))
    for arguments in (["run", "-f", file], ["attach", "demo"]):
        options = ["--kubeconfig", str(cluster.kubeconfig), "-n", cluster.namespace]
        command = Process([str(BIN / "trainer"), *arguments, *options], tmp_path / f"{arguments[0]}.log")
        command.start(ready="node-0 | started")

        command.send(signal.SIGINT)

        assert command.wait() == 130
        assert "detached: the cluster continues to run demo" in command.output()
        assert "Traceback" not in command.output()
        cluster.wait_for_state("demo", "Running")
