"""Hopeless trials are stopped, and stay with what they have reached."""

from __future__ import annotations

import pytest

from e2e.cluster import Cluster
from e2e.sweeps.sweep import curve_of, ended, is_pruned, optimization_job, trials_of
from e2e.waiting import until

pytestmark = pytest.mark.timeout(420)

LEVELS = """
level = float(os.environ["KUBEFLOW_TRAINER_OPT_LEVEL"])
for step in range(1, 28):
    say(currentStep=step, totalSteps=27, evalMetrics={"val_loss": level + 1 / step})
    time.sleep(0.3)
"""
TRIALS = 9


def test_asha(cluster: Cluster) -> None:
    """Trials that are worse at a rung are suspended, marked, and kept with their curve; the best one goes on."""
    space = {"level": {"categorical": {"choices": [str(level) for level in range(TRIALS)]}}}
    cluster.apply(
        optimization_job(
            "levels",
            LEVELS,
            space,
            trials=TRIALS,
            parallel=3,
            searchAlgorithm={"grid": {}},
            pruneAlgorithm={"asha": {"warmupSteps": 3, "reductionFactor": 3}},
        )
    )
    status = ended(cluster, "levels", timeout=360)
    trials = trials_of(cluster, "levels")
    pruned = {number for number, trial in trials.items() if is_pruned(trial)}
    recorded = {each["number"]: each for each in status["trials"]}
    assert sorted(trials) == sorted(recorded) == list(range(1, TRIALS + 1))
    assert len(pruned) >= 2
    assert status["trialCounts"] == {
        "running": 0,
        "succeeded": TRIALS - len(pruned),
        "failed": 0,
        "pruned": len(pruned),
    }
    assert status["result"]["trainJobName"] == "levels-trial-1"
    assert 1 not in pruned
    for number in pruned:
        trial, record = trials[number], recorded[number]
        curve = curve_of(trial)
        assert trial["spec"]["suspend"] is True
        assert record["state"] == "Pruned"
        assert 3 <= record["step"] < 27
        assert curve[0][0] == 1
        assert curve[-1][0] >= record["step"]
        assert float(record["value"]) == dict(curve)[record["step"]]
        cluster.wait_for_state(f"levels-trial-{number}", "Suspended")
    assert {curve_of(trials[number])[-1][0] for number in set(trials) - pruned} == {27}
    until(lambda: not _running_pods(cluster), "the pods of all trials have ended")


def _running_pods(cluster: Cluster) -> list[str]:
    pods = cluster.list("pod")
    return [pod["metadata"]["name"] for pod in pods if pod["status"].get("phase") not in {"Succeeded", "Failed"}]
