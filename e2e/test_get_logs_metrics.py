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
