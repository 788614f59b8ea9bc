"""The examples of sweeps as they are, on a cluster with the runtimes of config/runtimes."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from e2e.cluster import Cluster
from e2e.prerequisites import needs_module
from e2e.sweeps.sweep import assignment_of, curve_of, ended, is_pruned, trials_of

EXAMPLES = Path(__file__).parents[2] / "examples"

pytestmark = [pytest.mark.usefixtures("manager"), pytest.mark.timeout(600)]


@needs_module("sklearn")
@pytest.mark.parametrize(
    ("name", "goal"),
    [
        pytest.param("sweep-digits", 0.98, id="scikit-learn"),
        pytest.param("sweep-torch", 0.2, id="torch", marks=needs_module("torch")),
    ],
)
def test_result(cluster: Cluster, name: str, goal: float) -> None:
    """Of twenty trials, four at a time, the result is the best of the curves of those that ended, and it is good."""
    cluster.require_local("the framework and scikit-learn")
    manifests = [*yaml.safe_load_all((EXAMPLES / name / "optimizationjob.yaml").read_text())]
    cluster.apply(*manifests)
    (objective,) = manifests[-1]["spec"]["objectives"]
    status, trials = ended(cluster, name, timeout=540), trials_of(cluster, name)
    assert sorted(trials) == list(range(1, 21))
    choose = max if objective["direction"] == "Maximize" else min
    values = {}
    for number, trial in trials.items():
        if not is_pruned(trial):
            curve = [value for _, value in curve_of(trial)]
            values[number] = choose(curve) if objective.get("aggregate") in {"Min", "Max"} else curve[-1]
    best = choose(values, key=lambda number: values[number])
    result = status["result"]
    assert (result["trainJobName"], float(result["value"])) == (f"{name}-trial-{best}", values[best])
    assert {each["name"]: each["value"] for each in result["parameters"]} == assignment_of(trials[best])
    assert choose(values[best], goal) == values[best]
    assert status["trialCounts"]["succeeded"] == len(values)
    assert ("pruneAlgorithm" in manifests[-1]["spec"]) is (len(values) < 20)
