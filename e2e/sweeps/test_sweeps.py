"""Sweeps of real trainings, from their submission to the best trial."""

from __future__ import annotations

import re
import signal
from typing import Any

import pytest

from e2e.cluster import Cluster
from e2e.manager import Manager
from e2e.sweeps.sweep import METRIC, assignment_of, curve_of, ended, optimization_job, status_of, trials_of
from e2e.waiting import until

pytestmark = [pytest.mark.usefixtures("manager"), pytest.mark.timeout(420)]

DIGITS = """
import warnings
import numpy
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss

warnings.simplefilter("ignore")
images, digits = load_digits(return_X_y=True)
images = images / 16
model = SGDClassifier(
    loss="log_loss",
    alpha=float(os.environ["KUBEFLOW_TRAINER_OPT_ALPHA"]),
    penalty=os.environ["KUBEFLOW_TRAINER_OPT_PENALTY"],
    random_state=0,
)
for epoch in range(1, 6):
    model.partial_fit(images[:1200], digits[:1200], classes=numpy.arange(10))
    value = log_loss(digits[1200:], model.predict_proba(images[1200:]))
    say(currentStep=epoch, totalSteps=5, evalMetrics={"val_loss": value})
"""
SPACE = {
    "alpha": {"logUniform": {"min": "0.000001", "max": "1"}},
    "penalty": {"categorical": {"choices": ["l2", "l1"]}},
}

BOWL = """
x, z = (float(os.environ["KUBEFLOW_TRAINER_OPT_" + name]) for name in "XZ")
say(currentStep=1, evalMetrics={"val_loss": (x - 3) ** 2 + (z + 1) ** 2})
"""
PLANE: dict[str, Any] = {
    "x": {"uniform": {"min": "-5", "max": "5"}},
    "z": {"uniform": {"min": "-5", "max": "5", "type": "Int"}},
}


def row_of(cluster: Cluster, name: str) -> dict[str, str]:
    """What kubectl shows of a sweep that has a best trial, by title."""
    shown = cluster.kubectl("get", "optimizationjob", name).stdout
    titles, row = (re.split(r"  +", line.strip()) for line in shown.splitlines())
    return dict(zip(titles, row, strict=True))


def test_digits(cluster: Cluster) -> None:
    """The best of twenty trials of scikit-learn is the best of their curves, and kubectl shows how far they are."""
    cluster.require_local("scikit-learn")
    cluster.apply(
        optimization_job("digits", DIGITS, SPACE, trials=20, parallel=4, searchAlgorithm={"tpe": {"seed": 1}})
    )
    until(lambda: (status_of(cluster, "digits").get("trialCounts") or {}).get("succeeded"), "a trial has ended")
    shown = row_of(cluster, "digits")
    assert shown["STATE"] == "Running"
    assert 5 <= int(shown["PROGRESS %"]) < 100
    status = ended(cluster, "digits", timeout=360)
    assert status["trialCounts"] == {"running": 0, "succeeded": 20, "failed": 0, "pruned": 0}
    trials = trials_of(cluster, "digits")
    last = {number: curve_of(trial)[-1] for number, trial in trials.items()}
    best = min(last, key=lambda number: last[number][1])
    assert sorted(last) == list(range(1, 21))
    assert {step for step, _ in last.values()} == {5}
    result = status["result"]
    assert (result["trainJobName"], float(result["value"])) == (f"digits-trial-{best}", last[best][1])
    assert {each["name"]: each["value"] for each in result["parameters"]} == assignment_of(trials[best])
    assert [float(each["value"]) for each in status["trials"]] == [last[each["number"]][1] for each in status["trials"]]
    shown = row_of(cluster, "digits")
    assert (shown["STATE"], shown["PROGRESS %"], shown["BEST"]) == ("Complete", "100", result["value"])
    assert shown["AGE"]


@pytest.mark.parametrize(
    ("algorithm", "parallel"),
    [
        pytest.param({"random": {"seed": 7}}, 4, id="random"),
        pytest.param({"tpe": {"seed": 7, "startupTrials": 3}}, 1, id="tpe"),
    ],
)
def test_seed(cluster: Cluster, manager: Manager, algorithm: dict[str, Any], parallel: int) -> None:
    """Two sweeps of one seed try the same in the same order, though the manager is killed; those of others do not."""
    ((kind, settings),) = algorithm.items()
    seeds = {"one": settings, "other": settings | {"seed": 8}, "two": settings}
    found: dict[str, list[tuple[dict[str, str], str]]] = {}
    for name, chosen in seeds.items():
        sweep = optimization_job(name, BOWL, PLANE, trials=8, parallel=parallel, searchAlgorithm={kind: chosen})
        cluster.apply(sweep)
        if name == "two":
            until(lambda: len(status_of(cluster, "two").get("trials") or []) > 3, "some trials have ended")
            manager.send(signal.SIGKILL)
            manager.wait()
            manager.start(ready="started manager")
        values = {each["number"]: each["value"] for each in ended(cluster, name)["trials"]}
        trials = trials_of(cluster, name)
        found[name] = [(assignment_of(trials[number]), values[number]) for number in sorted(trials)]
    assert len(found["one"]) == 8
    assert found["one"] == found["two"]
    assert found["one"] != found["other"]
    assert METRIC in cluster.log("one-trial-1")
