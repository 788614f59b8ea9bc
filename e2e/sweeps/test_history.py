"""A sweep that is gone is in the history, with its trials."""

from __future__ import annotations

import json
from typing import Any

import pytest

from e2e.cluster import Cluster
from e2e.sweeps.sweep import assignment_of, curve_of, ended, optimization_job, trials_of
from e2e.test_history import Recorded, recorded
from e2e.waiting import until

__all__ = ["recorded"]

pytestmark = [pytest.mark.usefixtures("manager"), pytest.mark.timeout(300)]

TRIAL = """
rate = float(os.environ["KUBEFLOW_TRAINER_OPT_RATE"])
for step in (1, 2):
    say(currentStep=step, totalSteps=2, evalMetrics={"val_loss": rate / step})
"""
SPACE = {"rate": {"uniform": {"min": "0.5", "max": "5"}}}


def test_what_is_gone(cluster: Cluster, recorded: Recorded) -> None:
    """Values, parameters and curves of trials are those that the cluster had, over restarts of the recorder."""

    def kept(*arguments: str) -> Any:
        answer = recorded.ask("history", *arguments, "-o", "json")
        return json.loads(answer.stdout) if answer.returncode == 0 else None

    cluster.apply(
        optimization_job("search", TRIAL, SPACE, trials=5, parallel=2, searchAlgorithm={"random": {"seed": 5}})
    )
    until(lambda: kept("sweeps", "search"), "the sweep is recorded")
    recorded.process.stop()
    recorded.start()
    result = ended(cluster, "search")["result"]
    trials = trials_of(cluster, "search")
    until(lambda: (kept("sweeps", "search") or {}).get("state") == "Complete", "its end is recorded")
    until(lambda: [each["state"] for each in kept("list", "--sweep", "search")] == ["Complete"] * 5, "and its trials")

    recorded.process.stop()
    cluster.kubectl("delete", "optimizationjob", "search", "--timeout=60s")
    until(lambda: not cluster.list("trainjob"), "its trials went with it")
    recorded.start()
    until(lambda: kept("sweeps", "search")["deleted"], "that it is gone is recorded")

    (sweep,) = kept("sweeps")
    assert (sweep["state"], sweep["succeeded"], sweep["best"]["value"]) == ("Complete", 5, result["value"])
    found = {each["number"]: each for each in kept("sweeps", "search")["trials"]}
    assert sorted(found) == [1, 2, 3, 4, 5]
    for number, trial in trials.items():
        assert [tuple(point) for point in found[number]["points"]] == curve_of(trial)
        assert found[number]["parameters"] == list(assignment_of(trial).values())
    listed = {each["trial"]: each for each in kept("list", "--sweep", "search")}
    assert {number: each["parameters"] for number, each in listed.items()} == {
        number: assignment_of(trial) for number, trial in trials.items()
    }
    compared = recorded.ask("compare", "search-trial-1", "search-trial-2").stdout
    assert assignment_of(trials[1])["rate"] in compared
