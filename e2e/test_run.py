"""`trainer run` on a cluster."""

from __future__ import annotations

import re
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

    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0] == "trainjob.trainer.kubeflow.org/demo created"
    for node in ("node-0", "node-1"):
        own = [line.removeprefix(f"{node} | ") for line in lines if line.startswith(node)]
        assert own == ["step 0", "step 1", "step 2", "test accuracy: 99.0 %"]
    assert "demo  Running" in lines
    assert lines[-1].startswith("demo  Complete  after ")


def test_what_the_job_needs(cluster: Cluster, tmp_path: Path) -> None:
    """A ConfigMap with the script is applied first, and mounted in the pods."""
    job = train_job("demo", "")
    job["spec"]["trainer"]["command"] = ["python train.py"]
    job["spec"]["podSpecOverrides"] = [
        {
            "targetJobs": [{"name": "node"}],
            "containers": [{"name": "trainer", "volumeMounts": [{"name": "script", "mountPath": "/workspace"}]}],
            "volumes": [{"name": "script", "configMap": {"name": "script"}}],
        }
    ]
    script = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "script"},
        "data": {"train.py": "print('it works')"},
    }

    result = cluster.trainer("run", "-f", write(tmp_path, job, script))

    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.startswith("configmap/script applied\n")
    assert "node-0 | it works" in result.stdout.splitlines()


def test_no_follow_and_again(cluster: Cluster) -> None:
    """--no-follow returns at once; a name that is taken is reported with the remedy and exit code 2."""
    manifest = yaml.safe_dump(train_job("demo", SLEEP))

    first = cluster.trainer("run", "-f", "-", "--no-follow", stdin=manifest)
    second = cluster.trainer("run", "-f", "-", "--no-follow", stdin=manifest)

    assert (first.returncode, first.stdout) == (0, "trainjob.trainer.kubeflow.org/demo created\n")
    assert second.returncode == 2
    assert second.stderr.startswith(f"error: TrainJob demo exists already in namespace {cluster.namespace}: delete it")


def test_timeout(cluster: Cluster, tmp_path: Path) -> None:
    """--timeout ends the following with exit code 124 and leaves the job running."""
    result = cluster.trainer("run", "-f", write(tmp_path, train_job("demo", SLEEP)), "--timeout", "3")

    assert result.returncode == 124
    assert "not finished after 3 s: the cluster continues to run demo" in result.stdout
    cluster.wait_for_state("demo", "Running")


def test_interrupt(cluster: Cluster, tmp_path: Path) -> None:
    """Ctrl-C ends the following with exit code 130 and leaves the job running."""
    run = Process(
        [
            str(BIN / "trainer"), "run", "-f", write(tmp_path, train_job("demo", SLEEP)),
            "--kubeconfig", str(cluster.kubeconfig), "-n", cluster.namespace,
        ],
        tmp_path / "run.log",
    )  # fmt: skip
    run.start(ready="node-0 | started")

    run.send(signal.SIGINT)

    assert run.wait() == 130
    assert "interrupted: the cluster continues to run demo" in run.output()
    assert "Traceback" not in run.output()
    cluster.wait_for_state("demo", "Running")


def test_several_jobs(cluster: Cluster, tmp_path: Path) -> None:
    """Several jobs are followed together, each with its name; one that fails makes the exit code 1."""
    result = cluster.trainer(
        "run", "-f", write(tmp_path, train_job("good", STEPS), train_job("bad", "raise SystemExit(1)"))
    )

    assert result.returncode == 1
    assert "good/node-0 | step 2" in result.stdout
    assert re.search(r"^good  Complete", result.stdout, re.MULTILINE)
    assert re.search(r"^bad  Failed", result.stdout, re.MULTILINE)
