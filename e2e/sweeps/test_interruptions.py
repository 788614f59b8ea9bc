"""Each trial of a sweep ends once, and never too many run at once, when managers are killed and trials deleted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from e2e import audit
from e2e.cluster import Cluster
from e2e.manager import Manager
from e2e.sweeps.sweep import curve_of, ended, is_pruned, optimization_job, status_of, trials_of
from e2e.waiting import until

pytestmark = pytest.mark.timeout(480)

TRIAL = """
x = float(os.environ["KUBEFLOW_TRAINER_OPT_X"])
for step in range(1, 4):
    say(currentStep=step, totalSteps=3, evalMetrics={"val_loss": (x - 3) ** 2 + 1 / step})
    time.sleep(0.1)
"""
SPACE = {"x": {"uniform": {"min": "-5", "max": "5"}}}
TRIALS, PARALLEL, KILLS = 48, 4, 10
"""More trials than can end between so many kills, after each of which another one is waited for."""


@contextmanager
def watching(cluster: Cluster, file: Path) -> Iterator[None]:
    """A watch of TrainJobs, whose events go to a file."""
    command = cluster.command("get", "trainjob", "--watch", "-o", "json", "--output-watch-events")
    with file.open("wb") as output, subprocess.Popen(command, stdout=output) as process:
        try:
            yield
        finally:
            process.terminate()


def most_at_once(file: Path) -> int:
    """The most TrainJobs that were there and had not ended, of all moments of a watch."""
    decoder, text, active, most = json.JSONDecoder(), file.read_text(), set[str](), 0
    while text := text.lstrip():
        try:
            event, length = decoder.raw_decode(text)
        except json.JSONDecodeError:  # cut off by the end of the watch
            break
        text = text[length:]
        job = event["object"]
        conditions = (job.get("status") or {}).get("conditions") or []
        has_ended = any(each["type"] in {"Complete", "Failed"} and each["status"] == "True" for each in conditions)
        if event["type"] == "DELETED" or has_ended or is_pruned(job):
            active.discard(job["metadata"]["uid"])
        else:
            active.add(job["metadata"]["uid"])
        most = max(most, len(active))
    return most


def ended_numbers(cluster: Cluster) -> set[int]:
    return {each["number"] for each in status_of(cluster, "search").get("trials") or []}


def delete(cluster: Cluster, number: int) -> None:
    cluster.kubectl("delete", "trainjob", f"search-trial-{number}", "--timeout=60s")


def test_kills_and_deletions(cluster: Cluster, manager: Manager, tmp_path: Path) -> None:
    """Ten kills of the manager and three deletions leave a sweep with each trial ended once, as many as it asks for."""
    log = audit.log_of_run()
    file = tmp_path / "watch.json"
    algorithm = {"tpe": {"seed": 3, "startupTrials": 5}}
    with watching(cluster, file):
        cluster.apply(
            optimization_job("search", TRIAL, SPACE, trials=TRIALS, parallel=PARALLEL, searchAlgorithm=algorithm)
        )
        until(lambda: ended_numbers(cluster), "a trial has ended")
        gone = min(ended_numbers(cluster))
        delete(cluster, gone)
        again = set[int]()
        for kill in range(KILLS):
            os.kill(manager.pid, signal.SIGKILL)
            manager.wait()
            if kill in {2, 5}:  # nobody sees these deletions
                running = sorted(set(trials_of(cluster, "search")) - ended_numbers(cluster))
                if running:
                    delete(cluster, running[-1])
                    again.add(running[-1])
            before = ended_numbers(cluster)
            assert len(before) < TRIALS
            manager.start(ready="started manager")
            until(lambda before=before: ended_numbers(cluster) - before, "another trial has ended")  # type: ignore[misc]
        status = ended(cluster, "search", timeout=360)
    numbers = list(range(1, TRIALS + 1))
    assert [each["number"] for each in status["trials"]] == numbers
    assert status["trialCounts"] == {"running": 0, "succeeded": TRIALS, "failed": 0, "pruned": 0}
    trials = trials_of(cluster, "search")
    assert sorted(trials) == [number for number in numbers if number != gone]
    kept = {each["number"]: float(each["value"]) for each in status["trials"]}
    assert {number: curve_of(trial)[-1][1] for number, trial in trials.items()} == {
        number: kept[number] for number in trials
    }
    assert float(status["result"]["value"]) == min(kept.values())
    assert 1 < most_at_once(file) <= PARALLEL
    if log is not None:
        made = [
            request
            for request in audit.requests_of_manager(log)
            if (request.namespace, request.resource, request.verb) == (cluster.namespace, "trainjobs", "create")
            and request.code == 201
        ]
        assert TRIALS <= len(made) <= TRIALS + len(again)
