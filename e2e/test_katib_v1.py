"""Katib's trials that are PyTorchJobs and JAXJobs of v1: its webhook and its controller are played."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from e2e.cluster import Cluster
from e2e.conftest import running_cluster
from e2e.katib_v1 import COLLECTOR, Katib
from e2e.test_sdk import katib
from e2e.v1_jobs import jax_job, pytorch_job
from e2e.waiting import until

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="needs a dev cluster of its own that serves v1 jobs"),
]
TELL = ["sh", "-c", "echo accuracy=0.9"]
WORKERS = {"training.kubeflow.org/replica-type": "worker"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A dev cluster whose manager serves v1 jobs, with Katib's webhook for the pods of a namespace."""
    with running_cluster(tmp_path_factory.mktemp("katib-v1"), serves_v1=True) as cluster:
        cluster.apply(katib("Trial"))
        cluster.kubectl("wait", "--for=condition=Established", "crd/trials.kubeflow.org", "--timeout=30s")
        cluster.kubectl("create", "namespace", "team")
        cluster.namespace = "team"
        with Katib(cluster).webhook(tmp_path_factory.mktemp("webhooks")):
            yield cluster


@pytest.mark.parametrize(
    ("job", "primary_pods", "collected"),
    [
        pytest.param(pytorch_job("equal", TELL, 2), None, ["master"], id="equal-pods"),
        pytest.param(jax_job("one", TELL, 1), None, ["worker"], id="one-worker"),
        pytest.param(jax_job("all", TELL, 2), WORKERS, ["worker", "worker"], id="all-workers"),
    ],
)
def test_trial(
    cluster: Cluster, job: dict[str, Any], primary_pods: dict[str, str] | None, collected: list[str]
) -> None:
    """The metrics of a trial are collected from its primary pods alone, and Katib sees that it has succeeded."""
    own, kind, name = Katib(cluster), job["kind"].lower(), job["metadata"]["name"]
    own.start(job, primary_pods)
    end, reason, _ = until(lambda: own.end(kind, name), f"trial {name} has ended")
    assert (end, reason) == ("Succeeded", f"{job['kind']}Succeeded")
    found = {
        pod["metadata"]["name"]: pod["metadata"]["labels"]["training.kubeflow.org/replica-type"]
        for pod in cluster.list("pod")
        if pod["metadata"]["labels"]["training.kubeflow.org/job-name"] == name
        and COLLECTOR in [each["name"] for each in pod["spec"]["containers"]]
    }
    assert list(found.values()) == collected
    assert {own.observation(pod) for pod in found} == {"accuracy=0.9\n"}


def test_failure(cluster: Cluster) -> None:
    """Katib sees that a trial has failed, and why; who deletes the trial deletes all of it."""
    own = Katib(cluster)
    own.start(pytorch_job("failing", ["sh", "-c", "exit 3"]))
    end, reason, message = until(lambda: own.end("pytorchjob", "failing"), "the trial has ended")
    assert (end, reason) == ("Failed", "PyTorchJobFailed")
    assert "exited with code 3" in message
    cluster.kubectl("delete", "trial", "failing")
    for kind in ("pytorchjob", "trainjob", "jobset"):
        until(partial(_is_gone, cluster, kind), f"the {kind} is gone")


def _is_gone(cluster: Cluster, kind: str) -> bool:
    return cluster.get(kind, "failing") is None
