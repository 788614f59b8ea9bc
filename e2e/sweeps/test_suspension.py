"""A sweep is suspended, goes on, and is deleted at its time, and so are its trials, also those in a queue of Kueue."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.cluster import Cluster
from e2e.kueue import QUEUE, WORKLOADS, workload_definition
from e2e.sweeps.sweep import curve_of, ended, optimization_job, status_of, trials_of
from e2e.waiting import until

pytestmark = [pytest.mark.usefixtures("manager"), pytest.mark.timeout(300)]

TRIAL = """
rate = float(os.environ["KUBEFLOW_TRAINER_OPT_RATE"])
say(currentStep=1, totalSteps=2, evalMetrics={"val_loss": 9 + rate})
while not os.path.exists(DOOR):
    time.sleep(0.1)
say(currentStep=2, totalSteps=2, evalMetrics={"val_loss": rate})
"""
SPACE = {"rate": {"uniform": {"min": "0.5", "max": "5"}}}


@pytest.fixture(autouse=True)
def _workloads(session_cluster: Cluster) -> Iterator[None]:
    """The kind by which Kueue stops a job, without Kueue."""
    if session_cluster.get("crd", WORKLOADS) is not None:
        pytest.skip("Kueue of this cluster decides itself")
    session_cluster.apply(workload_definition())
    session_cluster.kubectl("wait", "--for=condition=Established", f"crd/{WORKLOADS}", "--timeout=30s")
    yield
    session_cluster.kubectl("delete", "crd", WORKLOADS, "--timeout=60s")


def queued(cluster: Cluster, number: int) -> dict[str, Any]:
    """What Kueue makes of the JobSet of a trial, once there is one."""
    jobset = until(lambda: cluster.get("jobset", f"search-trial-{number}"), f"trial {number} has a JobSet")
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": f"of-{number}", "labels": {"kueue.x-k8s.io/job-uid": jobset["metadata"]["uid"]}},
        "spec": {"active": True, "queueName": jobset["metadata"]["labels"][QUEUE]},
    }


def change(cluster: Cluster, **spec: Any) -> None:
    """The user changes the sweep."""
    cluster.kubectl("patch", "optimizationjob", "search", "--type=merge", "-p", json.dumps({"spec": spec}))


def are_active(cluster: Cluster) -> list[bool]:
    """Whether Kueue may run the trials."""
    return [each["spec"]["active"] for each in cluster.list("workload")]


def test_life(cluster: Cluster, tmp_path: Path) -> None:
    """Trials and their Workloads stop and go on with their sweep, none is begun meanwhile, and all go in the end."""
    cluster.require_local("a file of this machine")
    door = tmp_path / "open"
    body = TRIAL.replace("DOOR", repr(str(door)))
    sweep = optimization_job("search", body, SPACE, trials=3, parallel=2, searchAlgorithm={"random": {"seed": 5}})
    sweep["metadata"]["labels"] = {QUEUE: "gpus"}
    cluster.apply(sweep)
    cluster.apply(*(queued(cluster, number) for number in (1, 2)))
    for number in (1, 2):
        cluster.wait_for_state(f"search-trial-{number}", "Running")

    change(cluster, suspend=True)
    for number in (1, 2):
        cluster.wait_for_state(f"search-trial-{number}", "Suspended")
    until(lambda: status_of(cluster, "search").get("state") == "Suspended", "the sweep is suspended")
    assert are_active(cluster) == [False, False]
    assert sorted(trials_of(cluster, "search")) == [1, 2]

    change(cluster, suspend=False)
    until(lambda: are_active(cluster) == [True, True], "Kueue may run them again")
    door.touch()
    status = ended(cluster, "search")
    assert status["trialCounts"] == {"running": 0, "succeeded": 3, "failed": 0, "pruned": 0}
    for number, trial in trials_of(cluster, "search").items():
        assert curve_of(trial)[-1][0] == 2, number

    change(cluster, ttlSecondsAfterFinished=0)
    until(lambda: cluster.get("optimizationjob", "search") is None, "the sweep is deleted")
    until(lambda: not cluster.list("trainjob"), "its trials went with it")
