"""Hopeless trials are stopped, and stay with what they have reached."""

from __future__ import annotations

import pytest

from e2e.cluster import Cluster
from e2e.prerequisites import needs_module
from e2e.sweeps.sweep import curve_of, ended, is_pruned, optimization_job, trials_of
from e2e.waiting import until

pytestmark = [pytest.mark.usefixtures("manager"), pytest.mark.timeout(420)]

DIGITS = """
import torch
from sklearn.datasets import load_digits

torch.manual_seed(0)
torch.set_num_threads(1)
images, digits = (torch.as_tensor(each) for each in load_digits(return_X_y=True))
images = images.float() / 16
model = torch.nn.Linear(64, 10)
optimizer = torch.optim.SGD(model.parameters(), lr=float(os.environ["KUBEFLOW_TRAINER_OPT_RATE"]))
loss_of = torch.nn.CrossEntropyLoss()
for epoch in range(1, 28):
    for batch in torch.randperm(1200).split(60):
        optimizer.zero_grad()
        loss_of(model(images[batch]), digits[batch]).backward()
        optimizer.step()
    with torch.no_grad():
        value = loss_of(model(images[1200:]), digits[1200:]).item()
    say(currentStep=epoch, totalSteps=27, evalMetrics={"val_loss": value})
    time.sleep(0.3)
"""
RATES = ("0.3", "0.1", "0.03", "0.01", "0.003", "0.001", "0.0003", "0.0001", "0.00001")
"""From the best to one that learns nothing."""
TRIALS = len(RATES)


@needs_module("torch", "sklearn")
def test_asha(cluster: Cluster) -> None:
    """Trials of torch that are worse at a rung are suspended, marked and kept with their curve; the best goes on."""
    cluster.require_local("torch and scikit-learn")
    space = {"rate": {"categorical": {"choices": [*RATES]}}}
    cluster.apply(
        optimization_job(
            "digits",
            DIGITS,
            space,
            trials=TRIALS,
            parallel=3,
            searchAlgorithm={"grid": {}},
            pruneAlgorithm={"asha": {"warmupSteps": 3, "reductionFactor": 3}},
        )
    )
    status = ended(cluster, "digits", timeout=360)
    trials = trials_of(cluster, "digits")
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
    last = {number: curve_of(trials[number])[-1] for number in set(trials) - pruned}
    assert {step for step, _ in last.values()} == {27}
    best = min(last, key=lambda number: last[number][1])
    assert best == 1
    assert status["result"]["trainJobName"] == f"digits-trial-{best}"
    assert float(status["result"]["value"]) == last[best][1]
    for number in pruned:
        trial, record = trials[number], recorded[number]
        curve = curve_of(trial)
        assert trial["spec"]["suspend"] is True
        assert record["state"] == "Pruned"
        assert 3 <= record["step"] < 27
        assert curve[0][0] == 1
        assert curve[-1][0] >= record["step"]
        assert float(record["value"]) == dict(curve)[record["step"]]
        cluster.wait_for_state(f"digits-trial-{number}", "Suspended")
    until(lambda: not _running_pods(cluster), "the pods of all trials have ended")


def _running_pods(cluster: Cluster) -> list[str]:
    pods = cluster.list("pod")
    return [pod["metadata"]["name"] for pod in pods if pod["status"].get("phase") not in {"Succeeded", "Failed"}]
