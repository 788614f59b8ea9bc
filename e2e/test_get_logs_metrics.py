"""`trainer get`, `logs` and `metrics` on a cluster."""

from __future__ import annotations

import json
from typing import Any

from e2e.cluster import Cluster, train_job
from e2e.waiting import until

REPORTS = """\
import json, os, time
tag = "[trainer.kubeflow.org/v2alpha1/trainjob/trainerStatus]"
for step in range(1, 5):
    print("step", step, flush=True)
    if os.environ["JOB_COMPLETION_INDEX"] == "0":
        message = {"currentStep": step, "totalSteps": 4, "trainMetrics": {"loss": 1 / step}}
        print(tag, json.dumps(message), flush=True)
    time.sleep(0.3)
"""


def test_a_training_that_reports(cluster: Cluster) -> None:
    """Watch, logs and metrics follow a job to its end; afterwards they tell what it was."""
    cluster.apply(train_job("demo", REPORTS, nodes=2))
    until(lambda: cluster.list("pods"), "there are pods")

    followed = cluster.trainer("logs", "demo", "-f")
    drawn = cluster.trainer("metrics", "demo", "-w", "-o", "csv")
    watched = cluster.trainer("get", "demo", "-w")

    assert (followed.returncode, followed.stdout.splitlines()) == (0, [f"step {step}" for step in range(1, 5)])
    assert (watched.returncode, drawn.returncode) == (0, 0)
    assert [row.split(",")[2:5] for row in drawn.stdout.splitlines()[1:]][-1] == ["loss", "0.25", "4"]
    last = watched.stdout.splitlines()[-1].split()
    assert last[:2] == ["demo", "Complete"]
    everything = cluster.trainer("logs", "demo", "--all", "--tail", "1", "--progress").stdout.splitlines()
    assert [line.split(" | ")[0] for line in everything] == ["node-0", "node-1"]
    assert "trainerStatus]" in everything[0]
    assert everything[1] == "node-1 | step 4"

    def status() -> Any:
        return json.loads(cluster.trainer("get", "demo", "-o", "json").stdout)["status"]["trainerStatus"]

    until(lambda: status()["progressPercentage"] == 100, "all is reported")
    assert status()["trainMetrics"] == {"loss": "0.25"}
    assert "loss  0.25" in cluster.trainer("get", "demo").stdout


def test_a_training_that_failed(cluster: Cluster) -> None:
    """Why a job failed is in its details; metrics that were never reported are an error with the remedy."""
    cluster.apply(train_job("demo", "print('oops'); raise SystemExit(3)"))

    assert cluster.trainer("get", "demo", "-w").returncode == 1

    reported = cluster.trainer("get", "demo").stdout
    assert "Failed (FailedJobs" in reported
    assert "exited with code 3" in reported
    assert "oops" in reported
    assert cluster.trainer("logs", "demo").stdout == "oops\n"
    metrics = cluster.trainer("metrics", "demo")
    assert (metrics.returncode, metrics.stderr.count("\n")) == (1, 1)
    assert "has reported no metrics" in metrics.stderr
