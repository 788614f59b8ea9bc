"""A CustomResourceDefinition that is removed and put back: the manager survives and says what is missing."""

from __future__ import annotations

import json

import pytest
import yaml

from e2e.replicas import BRIEF, Replicas, fake_job
from e2e.submission import submit
from e2e.waiting import until

pytestmark = pytest.mark.timeout(300)


class Definition:
    """A definition that is taken away and put back."""

    def __init__(self, replicas: Replicas, name: str) -> None:
        self.cluster, self.name = replicas.cluster, name
        stored = json.loads(self.cluster.kubectl("get", "crd", name, "-o", "json").stdout)
        self.text = yaml.safe_dump(
            {"metadata": {"name": name}} | {key: stored[key] for key in ("apiVersion", "kind", "spec")}
        )

    def remove(self) -> None:
        self.cluster.kubectl("delete", "crd", self.name, "--timeout=60s")

    def put_back(self) -> None:
        self.cluster.kubectl("create", "-f", "-", stdin=self.text)
        self.cluster.kubectl("wait", "--for=condition=Established", f"crd/{self.name}", "--timeout=30s")


def test_job_sets_removed(replicas: Replicas) -> None:
    """Without JobSets the TrainJobs say so; when they are back, all are trained after all."""
    cluster, definition = replicas.cluster, Definition(replicas, "jobsets.jobset.x-k8s.io")
    submit(cluster, [fake_job("long")])
    replicas.wait_for_state("Running", ["long"])
    definition.remove()
    submit(cluster, [fake_job("brief", BRIEF)])
    for name in ("long", "brief"):
        cluster.kubectl("wait", "--for=condition=Created=False", f"trainjob/{name}", "--timeout=60s")
        assert "install the CRD jobsets.jobset.x-k8s.io" in message(replicas, name)
    definition.put_back()
    replicas.wait_for_state("Running", ["long"])
    replicas.wait_for_state("Complete", ["brief"])
    replicas.finish_pods()
    replicas.wait_for_state("Complete", ["long"])


def test_runtimes_removed(replicas: Replicas) -> None:
    """Without TrainingRuntimes those of the cluster go on to be used, and the log says what is missing."""
    cluster, definition = replicas.cluster, Definition(replicas, "trainingruntimes.trainer.kubeflow.org")
    definition.remove()
    until(lambda: "trainingruntimes.trainer.kubeflow.org" in replicas.leader.process.output(), "the log names it")
    submit(cluster, [fake_job("brief", BRIEF)])
    replicas.wait_for_state("Complete", ["brief"])
    definition.put_back()
    submit(cluster, [fake_job("after", BRIEF)])
    replicas.wait_for_state("Complete", ["after"])


def test_train_jobs_removed(replicas: Replicas) -> None:
    """With their kind all TrainJobs go, and what came of them; new ones are trained when it is back."""
    cluster, definition = replicas.cluster, Definition(replicas, "trainjobs.trainer.kubeflow.org")
    submit(cluster, [fake_job("long")])
    replicas.wait_for_state("Running", ["long"])
    definition.remove()
    until(lambda: not cluster.list("jobsets,jobs,pods"), "nothing is left of the TrainJob")
    definition.put_back()
    assert not submit(cluster, [fake_job("long", BRIEF)]).refused
    replicas.wait_for_state("Complete", ["long"])


def message(replicas: Replicas, name: str) -> str:
    job = replicas.cluster.get("trainjob", name) or {}
    [created] = [each for each in job["status"]["conditions"] if each["type"] == "Created"]
    return str(created["message"])
