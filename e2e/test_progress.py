"""Progress of trainings, from what they print to what `kubectl get trainjob` shows (KEP-2779)."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.cluster import Cluster
from e2e.debian_packages import needs
from e2e.manager import Manager, other_ports
from e2e.manager import manager as make_manager
from e2e.progress_training import container, own_runtime, replicated_job, script, training
from e2e.progress_view import SECONDS, progress, rows, wait_for_progress
from e2e.waiting import until

INTERVAL = 0.2
"""Seconds between two writes of one status: a small one, so that every report of these trainings can be seen."""
CONFIGURATION: dict[str, Any] = {
    "progress": {"statusInterval": f"{INTERVAL}s", "readInterval": "50ms"},
    # One that is killed here has no successor, and would have to wait for its own lease.
    "leaderElection": {"leaderElect": False},
}
COMPLETE = "Complete"


@pytest.fixture(scope="module")
def manager(session_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Manager]:
    """Our manager instead of that of the session: it writes sooner."""
    session_cluster.manager.stop()
    process = make_manager(session_cluster, tmp_path_factory.mktemp("progress"), **CONFIGURATION)
    try:
        process.start(ready="started manager")
        yield process
    finally:
        process.stop()
        session_cluster.manager.start(ready="started manager")


@pytest.fixture(autouse=True)
def running_manager(manager: Manager) -> None:
    """Every test has it."""


@contextmanager
def killed(manager: Manager) -> Iterator[None]:
    """The manager dies without a word, and is started again at the end."""
    manager.send(signal.SIGKILL)
    manager.wait()
    try:
        yield
    finally:
        manager.start(ready="started manager")


def test_columns(cluster: Cluster) -> None:
    """`kubectl get trainjob` shows state, percentage and ETA in words, and they move with the training."""
    moving = """
    for percentage in range(1, 101, 3):
        say(progressPercentage=percentage, estimatedRemainingSeconds=60 * (100 - percentage))
        time.sleep(0.15)
    """
    cluster.apply(
        training("long", "say(progressPercentage=3, estimatedRemainingSeconds=795649); live_on()"),
        training("moving", moving),
        training("silent", "live_on()"),
    )
    seen: list[list[str]] = []

    def has_ended() -> bool:
        _, table = rows(cluster)
        row = table["moving"][1:4]
        if row[1] and row not in seen:
            seen.append(row)
        return row[:2] == [COMPLETE, "100"]

    until(has_ended, lambda: f"the training is shown from beginning to end: {seen}")

    header, table = rows(cluster)
    assert header.split() == ["NAME", "STATE", "PROGRESS", "%", "ETA", "AGE"]
    assert table["long"][1:4] == ["Running", "3", "9 days 5 hours"]
    assert table["silent"][1:4] == ["Running", "", ""]
    assert re.fullmatch(r"\d+s", table["silent"][4])
    assert table["moving"][1:4] == [COMPLETE, "100", ""]
    percentages = [int(row[1]) for row in seen]
    assert len(percentages) > 1
    assert percentages == sorted(percentages)
    assert any("minutes" in row[2] for row in seen)


def test_all_fields(cluster: Cluster) -> None:
    """Fields arrive as they were printed, metrics digit by digit; the time is that of the line, not of the write."""
    message = (
        '{"progressPercentage": 45, "estimatedRemainingSeconds": 2700, "currentStep": 4500, "totalSteps": 10000, '
        '"currentEpoch": 2, "totalEpochs": 5, "more": [1], "trainMetrics": {"loss": 0.2000, "learning rate": 1e-05}, '
        '"evalMetrics": {"eval_loss": 123456789012345678.90}}'
    )
    cluster.apply(training("demo", f"write(TAG + ' ' + {message!r} + '\\n'); live_on()"))

    found = wait_for_progress(cluster, "demo", progressPercentage=45)

    (line,) = cluster.kubectl("logs", "job/demo-node-0", "--timestamps").stdout.splitlines()
    assert found == {
        "progressPercentage": 45,
        "estimatedRemainingSeconds": 2700,
        "estimatedRemainingTimeSummary": "45 minutes",
        "currentStep": 4500,
        "totalSteps": 10000,
        "currentEpoch": 2,
        "totalEpochs": 5,
        "trainMetrics": {"loss": "0.2000", "learning rate": "1e-05"},
        "evalMetrics": {"eval_loss": "123456789012345678.90"},
        "lastUpdatedTime": line[:19] + "Z",
    }


def test_initializer(cluster: Cluster) -> None:
    """While data is fetched its progress is in the column, and the training's own comes after it."""
    fetching = """
    for percentage in range(10, 60, 10):
        say(progressPercentage=percentage)
        time.sleep(3)
    """
    runtime = own_runtime(cluster, "mine")
    jobset = runtime["spec"]["template"]["spec"]
    jobset["startupPolicy"] = {"startupPolicyOrder": "InOrder"}
    jobset["replicatedJobs"].insert(0, replicated_job("initializer", [container("dataset-initializer", fetching)]))
    cluster.apply(runtime, training("demo", "say(progressPercentage=71); live_on()", runtime="/mine"))

    until(lambda: rows(cluster)[1]["demo"][2] in {"20", "30", "40"}, "the data's progress", timeout=SECONDS)
    assert progress(cluster, "demo") == {}
    wait_for_progress(cluster, "demo", progressPercentage=71)
    assert rows(cluster)[1]["demo"][2] == "71"
    assert "dataset-initializer: Complete" in cluster.trainer("get", "demo").stdout


@needs("openmpi-bin", "openssh-server")
@pytest.mark.timeout(180)
def test_launcher_of_mpi(cluster: Cluster) -> None:
    """Processes of MPI are heard through the log of the launcher, whichever node they run on."""
    if cluster.is_local and not cluster.pod_network.startswith("netns"):
        pytest.skip(f"pods share one network on this machine ({cluster.pod_network})")
    body = """
    rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
    if rank == 1:
        say(progressPercentage=64, trainMetrics={"hosts": rank})
    """
    job = training("demo", "", runtime="mpi-openmpi", nodes=2)
    job["spec"]["trainer"]["command"] = ["mpirun", "-x", "PATH", "python", "-c", script(body)]
    cluster.apply(job)

    cluster.wait_for_state("demo", COMPLETE, "Failed", timeout=120)
    assert wait_for_progress(cluster, "demo", progressPercentage=64)["trainMetrics"] == {"hosts": "1"}


def test_training_ends_while_no_manager_runs(cluster: Cluster, manager: Manager) -> None:
    """The next manager reads the log of a pod that has ended, and writes the last message."""
    body = """
    say(progressPercentage=10)
    time.sleep(5)
    say(progressPercentage=100, evalMetrics={"accuracy": 0.99})
    """
    cluster.apply(training("demo", body))
    wait_for_progress(cluster, "demo", progressPercentage=10)
    with killed(manager):
        until(lambda: cluster.list("pod")[0]["status"]["phase"] == "Succeeded", "the pod has ended")
        assert progress(cluster, "demo")["progressPercentage"] == 10

    cluster.wait_for_state("demo", COMPLETE)
    assert wait_for_progress(cluster, "demo", progressPercentage=100)["evalMetrics"] == {"accuracy": "0.99"}


def test_only_the_leader_follows(cluster: Cluster, manager: Manager, tmp_path: Path) -> None:
    """Of two managers that share a lease the leader alone reads logs; the other does when it is gone."""
    election = {"leaderElect": True, "leaseDuration": "3s", "renewDeadline": "2s", "retryPeriod": "500ms"}
    configuration = CONFIGURATION | {"controller": {"namespace": cluster.namespace}, "leaderElection": election}
    first = make_manager(cluster, tmp_path, "first", **configuration)
    second = make_manager(cluster, tmp_path, "second", **configuration, **other_ports())
    manager.stop()
    try:
        first.start(ready="started controller")
        second.start(ready="found leader")
        body = "\nfor step in range(3000): say(currentStep=step, totalSteps=3000); time.sleep(0.1)"
        cluster.apply(training("demo", body))
        until(lambda: progress(cluster, "demo"), "a report", timeout=SECONDS)
        assert first.series(cluster, "trainer_progress_active_streams") == 1
        assert second.series(cluster, "trainer_progress_active_streams") == 0
        assert second.series(cluster, "trainer_progress_lines_total") == 0

        first.stop()
        before = progress(cluster, "demo")["currentStep"]
        until(lambda: progress(cluster, "demo")["currentStep"] > before, "the other goes on", timeout=SECONDS)
        assert second.series(cluster, "trainer_progress_active_streams") == 1
    finally:
        first.stop()
        second.stop()
        manager.start(ready="started manager")


def test_field_manager(cluster: Cluster) -> None:
    """Progress has a field manager of its own, which owns nothing else."""
    cluster.apply(training("demo", "say(progressPercentage=10); live_on()"))
    wait_for_progress(cluster, "demo", progressPercentage=10)

    shown = cluster.kubectl("get", "trainjob", "demo", "-o", "yaml", "--show-managed-fields").stdout
    managed = yaml.safe_load(shown)["metadata"]["managedFields"]

    (ours,) = [entry for entry in managed if entry["manager"] == "trainer-progress"]
    assert (ours["operation"], ours["subresource"]) == ("Apply", "status")
    assert list(ours["fieldsV1"]) == ["f:status"]
    assert list(ours["fieldsV1"]["f:status"]) == ["f:trainerStatus"]
    others = [entry for entry in managed if entry is not ours]
    assert "f:trainerStatus" not in str(others)
