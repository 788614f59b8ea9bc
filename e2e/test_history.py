"""The history: what was recorded of a training is there when the training is gone."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cluster import Cluster, train_job
from e2e.identity import write_credentials
from e2e.installation import CONFIG, free_ports
from e2e.kubectl import BIN
from e2e.processes import Process
from e2e.waiting import until

TRAINING = """\
import json, os, sys, time
tag = "[trainer.kubeflow.org/v2alpha1/trainjob/trainerStatus]"
rate = float(os.environ["LEARNING_RATE"])
for step in range(1, 5):
    print("step", step, "on", os.environ["JOB_COMPLETION_INDEX"], flush=True)
    if os.environ["JOB_COMPLETION_INDEX"] == "0":
        message = {"currentStep": step, "totalSteps": 4, "trainMetrics": {"loss": rate / step}}
        print(tag, json.dumps(message), flush=True)
    time.sleep(0.2)
"""


pytestmark = pytest.mark.timeout(300)  # a command of trainer for each answer


ACCOUNT, ACCOUNT_NAMESPACE = "trainer-history", "trainer-system"
RIGHTS = ("service_account", "role", "role_binding")


class Recorded:
    """A recorder of one namespace with a database of its own, and with the account and the rights of config/history."""

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self._cluster = cluster
        self.environment = {"XDG_STATE_HOME": str(directory / "state")}
        (self.port,) = free_ports(1)
        kubeconfig = directory / "kubeconfig"
        write_credentials(cluster, kubeconfig, ACCOUNT, ACCOUNT_NAMESPACE)
        command = [str(BIN / "trainer"), "history", "record", "--health-port", str(self.port)]
        options = ["--kubeconfig", str(kubeconfig), "-n", cluster.namespace]
        self.process = Process([*command, *options], directory / "recorder.log", self.environment)

    def start(self) -> None:
        self.process.start(ready="started recorder")

    def is_ready(self) -> bool:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=10) as answer:
            return bool(answer.status == 200)

    def ask(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command that answers from the database alone."""
        environment = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"} | self.environment
        command = [str(BIN / "trainer"), *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=110, check=False)

    def ask_cluster(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command that asks the cluster first."""
        return self.ask(*arguments, "--kubeconfig", str(self._cluster.kubeconfig), "-n", self._cluster.namespace)

    def list(self) -> list[dict[str, object]]:
        found: list[dict[str, object]] = json.loads(self.ask("history", "list", "-o", "json").stdout)
        return found


@pytest.fixture
def recorded(cluster: Cluster, tmp_path: Path) -> Iterator[Recorded]:
    cluster.kubectl("create", "namespace", ACCOUNT_NAMESPACE, check=False)
    files = [str(CONFIG / "history" / f"{file}.yaml") for file in RIGHTS]
    for file in files:
        cluster.kubectl("apply", "--server-side", "-n", ACCOUNT_NAMESPACE, "-f", file)
    own = Recorded(cluster, tmp_path)
    own.start()
    assert own.is_ready()
    yield own
    own.process.stop()
    assert "cannot be watched" not in own.process.output()
    assert "orbidden" not in own.process.output()
    for file in reversed(files):
        cluster.kubectl("delete", "-n", ACCOUNT_NAMESPACE, "--ignore-not-found", "-f", file)


def with_rate(name: str, rate: str) -> dict[str, object]:
    job = train_job(name, TRAINING, nodes=2)
    variables = [{"name": "LEARNING_RATE", "value": rate}, {"name": "API_TOKEN", "value": "do-not-store"}]
    job["spec"]["trainer"]["env"] = variables
    return job


def test_what_is_gone(cluster: Cluster, recorded: Recorded, tmp_path: Path) -> None:
    """List, details, metrics, logs and comparison of trainings that were deleted; a restart doubles nothing."""
    for name, rate in (("one", "1"), ("two", "2")):
        cluster.apply(with_rate(name, rate))
    for name in ("one", "two"):
        cluster.wait_for_state(name, "Complete")
    until(lambda: [each["state"] for each in recorded.list()] == ["Complete"] * 2, lambda: f"{recorded.list()}")
    until(lambda: recorded.ask("logs", "one", "--history", "--node", "1").returncode == 0, "logs are kept")
    until(lambda: recorded.ask("metrics", "two", "--history", "-o", "csv").stdout.count("\n") == 5, "and metrics")

    recorded.process.stop()
    cluster.kubectl("delete", "trainjob", "one", "two")
    until(lambda: not cluster.list("trainjobs"), "the TrainJobs are gone")
    recorded.start()
    until(lambda: all(each["deleted"] for each in recorded.list()), lambda: f"{recorded.list()}")

    assert sorted(str(each["name"]) for each in recorded.list()) == ["one", "two"]
    table = recorded.ask("get", "--history", "-n", cluster.namespace).stdout
    assert table.count("Complete") == 2
    assert "loss 0.25" in table
    details = recorded.ask("get", "one", "--history").stdout
    assert "Complete" in details
    stored = recorded.ask("get", "one", "--history", "-o", "json").stdout
    assert "LEARNING_RATE" in stored
    assert "do-not-store" not in stored
    assert b"do-not-store" not in b"".join(file.read_bytes() for file in (tmp_path / "state").rglob("history.db*"))

    metrics = recorded.ask_cluster("metrics", "one", "-o", "csv")
    assert [row.split(",")[2:5] for row in metrics.stdout.splitlines()[1:]] == [
        ["loss", value, step] for value, step in (("1", "1"), ("0.5", "2"), ("0.333333333333333", "3"), ("0.25", "4"))
    ]
    assert "is gone since" in metrics.stderr
    logs = recorded.ask_cluster("logs", "one", "--all")
    assert logs.stdout.splitlines()[-1] == "node-1 | step 4 on 1"
    assert "is gone since" in logs.stderr
    gone = recorded.ask_cluster("get", "one")
    assert gone.returncode == 1
    assert "trainer get one --history" in gone.stderr

    compared = recorded.ask("compare", "one", "two").stdout
    assert next(line.split() for line in compared.splitlines() if "LEARNING_RATE" in line)[1:] == ["1", "2"]
    assert any(line.split() == ["loss", "0.25", "0.5"] for line in compared.splitlines())
    exported = recorded.ask("history", "export", "--table", "metrics").stdout
    assert exported.count("\n") == 9
