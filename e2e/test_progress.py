"""Progress of trainings, from what they print to what `kubectl get trainjob` shows (KEP-2779)."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from e2e.cluster import Cluster
from e2e.manager import Manager, reconfigured
from e2e.progress_training import training
from e2e.progress_view import progress, rows, wait_for_progress
from e2e.waiting import until

INTERVAL = 0.2
"""Seconds between two writes of one status: a small one, so that every report of these trainings can be seen."""
CONFIGURATION: dict[str, Any] = {
    "progress": {"statusInterval": f"{INTERVAL}s", "readInterval": "50ms"},
    # One that is killed here has no successor, and would have to wait for its own lease.
    "leaderElection": {"leaderElect": False},
}
COMPLETE = "Complete"


@pytest.fixture(scope="module", autouse=True)
def manager(session_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Manager]:
    """Our manager instead of that of the session: it writes sooner."""
    with reconfigured(session_cluster, tmp_path_factory.mktemp("progress"), **CONFIGURATION) as process:
        yield process


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


def test_last_checkpoint(cluster: Cluster) -> None:
    """It is shown with what would be lost, and outlives a suspension, until the next run saves a later one."""
    body = """
    say(currentStep=100, totalSteps=1000, checkpoint={"step": 100, "path": "step-100"})
    say(currentStep=185)
    live_on()
    """
    cluster.apply(training("demo", body))
    first = wait_for_progress(cluster, "demo", currentStep=185)["checkpoint"]
    assert (first["step"], first["path"]) == (100, "step-100")
    header, row = cluster.kubectl("get", "trainjob", "demo", "-o", "wide").stdout.splitlines()
    assert header.split()[-1] == "CHECKPOINT"
    assert re.fullmatch(r"\d+s", row.split()[-1])
    said = cluster.trainer("get", "demo").stdout
    assert re.search(r"last checkpoint step 100, \d+ s ago; 85 steps would be lost now", said), said

    assert "85 steps are to be done again" in cluster.trainer("suspend", "demo").stderr
    until(lambda: not cluster.list("pods"), "its pods are gone")
    assert progress(cluster, "demo")["checkpoint"] == first
    assert "; 85 steps are to be done again" in cluster.trainer("get", "demo").stdout

    cluster.trainer("resume", "demo")
    until(lambda: progress(cluster, "demo")["checkpoint"]["time"] > first["time"], "the next run saves one")


def test_training_ends_while_no_manager_runs(cluster: Cluster, manager: Manager) -> None:
    """The next manager reads the log of a pod that has ended, and writes the last message."""
    body = """
    say(progressPercentage=10)
    time.sleep(5)
    say(progressPercentage=100, evalMetrics={"accuracy": 0.99})
    """
    cluster.apply(training("demo", body))
    wait_for_progress(cluster, "demo", progressPercentage=10)
    manager.send(signal.SIGKILL)
    manager.wait()
    try:
        until(lambda: cluster.list("pod")[0]["status"]["phase"] == "Succeeded", "the pod has ended")
        assert progress(cluster, "demo")["progressPercentage"] == 10
    finally:
        manager.start(ready="started manager")

    cluster.wait_for_state("demo", COMPLETE)
    assert wait_for_progress(cluster, "demo", progressPercentage=100)["evalMetrics"] == {"accuracy": "0.99"}
