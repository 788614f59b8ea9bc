"""A suspended training comes back with another number of nodes, in both API versions."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from e2e.home import Home, running_home
from e2e.kubectl import Kubectl
from e2e.waiting import until

Object = dict[str, Any]

pytestmark = [
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="`trainer up` brings its own clusters"),
    pytest.mark.timeout(300),
]

TRAIN = """
import os, pathlib, sys, time
from trainer.progress.report import report
checkpoint = pathlib.Path(sys.argv[1])
step = int(checkpoint.read_text()) if checkpoint.exists() else 0
while True:
    step += 1
    if os.environ["JOB_COMPLETION_INDEX"] == "0":
        checkpoint.with_suffix(".new").write_text(str(step))
        checkpoint.with_suffix(".new").rename(checkpoint)
        nodes = int(os.environ["PET_NNODES"])
        report(current_step=step, total_steps=100000, train_metrics={"nodes": nodes}, force=True)
    time.sleep(0.2)
"""


@pytest.fixture(scope="module", params=["v2alpha1", "v1alpha1"])
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A cluster of each API version."""
    with running_home(tmp_path_factory.mktemp(request.param), "--api-version", request.param) as running:
        yield running


@pytest.fixture
def cluster(home: Home) -> Kubectl:
    """The cluster, for its user."""
    return home.kubectl


def submit(cluster: Kubectl, name: str, checkpoint: Path) -> None:
    """A training on two nodes that goes on from its checkpoint."""
    version = json.loads(cluster.kubectl("get", "crd", "trainjobs.trainer.kubeflow.org", "-o", "json").stdout)
    trainer = {"numNodes": 2, "image": "any", "command": [sys.executable, "-c", TRAIN, str(checkpoint)]}
    job = {
        "apiVersion": f"trainer.kubeflow.org/{version['spec']['versions'][0]['name']}",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {"runtimeRef": {"name": "torch-distributed"}, "trainer": trainer},
    }
    cluster.kubectl("create", "-f", "-", stdin=json.dumps(job))


def step_on(cluster: Kubectl, name: str, nodes: int, *, after: int = 0) -> int | None:
    """The step that pods of so many nodes have reported last, if it is a later one."""
    status = (cluster.get("trainjob", name) or {}).get("status") or {}
    progress = status.get("trainerStatus") or {}
    known = {each["name"]: each["value"] for each in progress.get("metrics") or []} | (
        progress.get("trainMetrics") or {}
    )
    step: int = progress.get("currentStep") or 0
    return step if known.get("nodes") == str(nodes) and step > after else None


def running_pods(cluster: Kubectl, name: str) -> list[Object]:
    """The pods of a TrainJob."""
    pods = cluster.kubectl("get", "pods", "-l", f"jobset.sigs.k8s.io/jobset-name={name}", "-o", "json").stdout
    found: list[Object] = json.loads(pods)["items"]
    return found


def change(cluster: Kubectl, name: str, **spec: Any) -> None:
    """kubectl patch trainjob."""
    cluster.kubectl("patch", "trainjob", name, "--type=merge", "-p", json.dumps({"spec": spec}))


def test_fewer_nodes_and_back(home: Home, cluster: Kubectl, tmp_path: Path) -> None:
    """It goes on from its checkpoint on one node instead of two, and back on two; its progress is never lost."""
    submit(cluster, "size", tmp_path / "checkpoint")
    step = until(partial(step_on, cluster, "size", 2), "two nodes report")
    for nodes in (1, 2):
        former = {pod["metadata"]["uid"] for pod in running_pods(cluster, "size")}
        change(cluster, "size", suspend=True)
        if nodes == 1:
            change(cluster, "size", trainer={"numNodes": nodes})
            change(cluster, "size", suspend=False)
        else:
            scaled = home.trainer("scale", "size", str(nodes))
            assert scaled.stdout.endswith(f"size scaled to {nodes} nodes: trainer resume size starts it\n"), scaled
            home.trainer("resume", "size")
        step = until(partial(step_on, cluster, "size", nodes, after=step), f"{nodes} nodes go on")
        pods = running_pods(cluster, "size")
        assert len(pods) == nodes
        assert not former & {pod["metadata"]["uid"] for pod in pods}
    events = cluster.kubectl("get", "events", "-o", "json").stdout
    assert "JobSet is made anew" in events
    cluster.kubectl("delete", "trainjob", "size")


def test_a_manager_that_is_killed_between_deletion_and_creation(home: Home, cluster: Kubectl, tmp_path: Path) -> None:
    """The next one makes the JobSet anew, and the training goes on."""
    submit(cluster, "killed", tmp_path / "checkpoint")
    step = until(partial(step_on, cluster, "killed", 2), "two nodes report")
    change(cluster, "killed", suspend=True)
    until(lambda: not running_pods(cluster, "killed"), "pods have ended")
    hold = {"metadata": {"finalizers": ["example.com/hold"]}}
    cluster.kubectl("patch", "jobset", "killed", "--type=merge", "-p", json.dumps(hold))
    change(cluster, "killed", suspend=False, trainer={"numNodes": 1})
    until(
        lambda: (cluster.get("jobset", "killed") or {})["metadata"].get("deletionTimestamp"), "JobSet is being deleted"
    )
    os.kill(home.pids()["manager"], signal.SIGKILL)
    until(lambda: "manager" not in home.pids(), "the manager is gone")
    cluster.kubectl(
        "patch", "jobset", "killed", "--type=json", "-p", '[{"op": "remove", "path": "/metadata/finalizers"}]'
    )
    until(lambda: cluster.get("jobset", "killed") is None, "JobSet is gone")
    up = home.trainer("up")
    assert up.returncode == 0, up.stderr
    until(partial(step_on, cluster, "killed", 1, after=step), "one node goes on")
    assert len(running_pods(cluster, "killed")) == 1
    cluster.kubectl("delete", "trainjob", "killed")
