"""Real trainings that are suspended, evicted and killed, and go on from their checkpoints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.checkpoints.surviving.record import STARTED, STEPS, THIRD
from e2e.cluster import Cluster, train_job
from e2e.manager import with_reporter
from e2e.prerequisites import needs_module
from e2e.progress_view import progress
from e2e.waiting import until

SCRIPTS = Path(__file__).with_name("surviving")
pytestmark = [
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="pods must be processes of this machine"),
    pytest.mark.timeout(300),
    needs_module("torch"),
]
FRAMEWORKS = [
    pytest.param("plain_torch.py", id="plain-torch"),
    pytest.param("transformers_trainer.py", id="transformers", marks=needs_module("transformers")),
    pytest.param("lightning_trainer.py", id="lightning", marks=needs_module("lightning")),
    pytest.param("keras_trainer.py", id="keras", marks=needs_module("keras")),
]
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "kept"},
    "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
}


@pytest.fixture(autouse=True)
def manager(session_cluster: Cluster, tmp_path: Path) -> Iterator[None]:
    """Our manager instead of that of the session: it has an image with the reporter."""
    with with_reporter(session_cluster, tmp_path):
        yield


def submit(cluster: Cluster, script: str, *, nodes: int = 1, restarts: int = 0, **variables: str) -> None:
    """Submit one of the scripts as a TrainJob with a claim for checkpoints."""
    job = train_job("survives", "", nodes=nodes, runtime="torch-distributed", maxRestarts=restarts)
    job["metadata"]["annotations"] = {"trainer.kubeflow.org/checkpoints": "kept"}
    trainer = job["spec"]["trainer"]
    del trainer["image"]
    trainer["command"] = ["python", str(SCRIPTS / script)]
    trainer["env"] = [{"name": name, "value": value} for name, value in variables.items()]
    cluster.apply(CLAIM, job)


def records(cluster: Cluster) -> list[list[tuple[int, float]]]:
    """What rank 0 has recorded: the steps of each of its runs."""
    (claim,) = (cluster.kubeconfig.parent / "data" / "claims" / cluster.namespace / "kept").glob("survives-*")
    return runs_of(claim / "record-0")


def runs_of(record: Path) -> list[list[tuple[int, float]]]:
    """The runs of a record: numbers of steps, and losses."""
    parts = record.read_text().split(f"{STARTED}\n")[1:]
    return [[(int(step), float(loss)) for step, loss in map(str.split, part.splitlines())] for part in parts]


def wait_for_step(cluster: Cluster, step: int = THIRD) -> None:
    """Wait until so many steps are done: a third of them, unless stated otherwise."""

    def reached() -> bool:
        return int(progress(cluster, "survives").get("currentStep") or 0) >= step

    until(reached, lambda: cluster.log("survives") + cluster.kubectl("describe", "trainjob").stdout)


def undisturbed(script: str, directory: Path) -> dict[int, float]:
    """The losses of a run on this machine that nothing disturbs."""
    alone = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    environment = {name: value for name, value in os.environ.items() if name != "TRAINER_CHECKPOINT_DIR"}
    environment |= {"RECORD": str(directory), **(alone if script == "plain_torch.py" else {})}
    command = [sys.executable, str(SCRIPTS / script)]
    result = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert result.returncode == 0, result.stderr
    (run,) = runs_of(directory / "record-0")
    return dict(run)


def check(cluster: Cluster, *, runs: int, twice: int) -> dict[int, float]:
    """All steps were made, few of them twice, in so many runs; returns the losses."""
    found = records(cluster)
    assert len(found) == runs
    made = Counter(step for run in found for step, _ in run)
    assert sorted(made) == list(range(1, STEPS + 1))
    assert sum(made.values()) - STEPS <= twice, made
    return {step: loss for run in found for step, loss in run}


def evict(cluster: Cluster, pod: str, **options: int) -> None:
    """Evict a pod, as kubectl drain does."""
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}, "deleteOptions": options}
    path = f"/api/v1/namespaces/{cluster.namespace}/pods/{pod}/eviction"
    cluster.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(eviction))


def pods(cluster: Cluster) -> list[str]:
    """The names of the pods that are there."""
    return [pod["metadata"]["name"] for pod in cluster.list("pods")]


def wait_for_pods(cluster: Cluster, count: int) -> None:
    """Wait until there are so many pods."""
    until(lambda: len(pods(cluster)) == count, lambda: f"{count} pods, not {pods(cluster)}")


def suspend(cluster: Cluster) -> None:
    """Suspend, and wait until the pods are gone."""
    cluster.suspend("survives")
    wait_for_pods(cluster, 0)


@pytest.mark.parametrize("script", FRAMEWORKS)
def test_suspended_at_a_third(cluster: Cluster, script: str, tmp_path: Path) -> None:
    """A resumed training goes on where it was, and its losses are those of a training that nothing has disturbed."""
    submit(cluster, script)
    wait_for_step(cluster)
    suspend(cluster)
    assert progress(cluster, "survives")["checkpoint"]["step"] >= THIRD
    cluster.suspend("survives", False)
    cluster.complete("survives")
    losses = check(cluster, runs=2, twice=2)
    assert losses == pytest.approx(undisturbed(script, tmp_path), rel=1e-4)


@pytest.mark.parametrize("script", FRAMEWORKS[:2])
def test_evicted(cluster: Cluster, script: str) -> None:
    """The eviction of one of two pods restarts both, costs no restart that counts, and loses nothing."""
    submit(cluster, script, nodes=2)
    wait_for_step(cluster)
    evict(cluster, next(name for name in pods(cluster) if "-node-0-1-" in name))
    cluster.complete("survives")
    check(cluster, runs=2, twice=2)
    status = (cluster.get("jobset", "survives") or {})["status"]
    assert (status["restarts"], status.get("restartsCountTowardsMax", 0)) == (1, 0)


def test_killed(cluster: Cluster) -> None:
    """A rank that is killed counts as a failure, and the training goes on from the last periodic save."""
    submit(cluster, "plain_torch.py", nodes=2, restarts=1, FAULT="sigkill", TRAINER_CHECKPOINT_SECONDS="0.01")
    cluster.complete("survives")
    check(cluster, runs=2, twice=2)
    status = (cluster.get("jobset", "survives") or {})["status"]
    assert (status["restarts"], status["restartsCountTowardsMax"]) == (1, 1)


def test_other_sizes(cluster: Cluster) -> None:
    """A training goes on with one node instead of two, and with two again."""
    submit(cluster, "plain_torch.py", nodes=2, SLOW_RUNS="2")
    step = THIRD
    for nodes in (1, 2):
        wait_for_step(cluster, step)
        suspend(cluster)
        step = progress(cluster, "survives")["checkpoint"]["step"] + 1
        patch = json.dumps({"spec": {"trainer": {"numNodes": nodes}}})
        cluster.kubectl("patch", "trainjob", "survives", "--type=merge", "-p", patch)
        cluster.suspend("survives", False)
        wait_for_pods(cluster, nodes)
    cluster.complete("survives")
    check(cluster, runs=3, twice=4)


def test_in_the_middle_of_a_save(cluster: Cluster) -> None:
    """What is half-written when the pod ends is not there: the checkpoint before it is used."""
    submit(cluster, "plain_torch.py", FAULT="save", TRAINER_CHECKPOINT_SECONDS="0.01")
    until(lambda: "hangs in a save" in cluster.log("survives"), "a save has begun")
    former = progress(cluster, "survives")["checkpoint"]["step"]
    evict(cluster, *pods(cluster), gracePeriodSeconds=1)
    cluster.complete("survives")
    first, second = records(cluster)
    assert first[-1][0] == THIRD
    assert second[0][0] == former + 1
