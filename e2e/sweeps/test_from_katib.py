"""Experiments of Katib, converted by `trainer convert`, search as they are written.

Their programs get parameters as arguments and variables, print their metrics, and know nothing of TrainJobs.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from e2e.cluster import IMAGE, Cluster
from e2e.waiting import until

pytestmark = [pytest.mark.usefixtures("manager"), pytest.mark.timeout(300)]

SCRIPT = """
import os, sys
rate, noted = float(sys.argv[1]), os.environ["NOTE"]
assert noted == f"rate {sys.argv[1]} of {os.environ['NAME']}", noted
if os.environ.get("RANK", "0") == "0":
    for epoch in range(1, 4):
        print(f"Epoch {epoch}/3 loss={(rate - 0.03) ** 2 + 1 / epoch:.6f}", flush=True)
"""
ENV = [
    {"name": "PROGRAM", "value": SCRIPT},
    {"name": "NAME", "value": "${trialParameters.trial}"},
    {"name": "NOTE", "value": "rate ${trialParameters.learningRate} of ${trialParameters.trial}"},
]
COMMAND = ["python", "-u", "-c", SCRIPT, "${trialParameters.learningRate}"]
SHELL = ["sh", "-c", 'exec python -u -c "$PROGRAM" "${trialParameters.learningRate}"']
STEPS = {"min": "0.01", "max": "0.05", "step": "0.01"}


def container(name: str, command: list[str]) -> dict[str, Any]:
    """A container that trains."""
    return {"name": name, "image": IMAGE, "command": command, "env": ENV}


def pods(name: str, command: list[str]) -> dict[str, Any]:
    """A pod template."""
    return {"spec": {"restartPolicy": "Never", "containers": [container(name, command)]}}


def job(command: list[str]) -> dict[str, Any]:
    """A Job."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "spec": {"backoffLimit": 0, "template": pods("train", command)},
    }


PYTORCH_JOB = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "PyTorchJob",
    "spec": {
        "pytorchReplicaSpecs": {
            "Master": {"restartPolicy": "Never", "template": pods("pytorch", COMMAND)},
            "Worker": {"template": pods("pytorch", COMMAND)},
        }
    },
}
TRAIN_JOB = {
    "apiVersion": "trainer.kubeflow.org/v2alpha1",
    "kind": "TrainJob",
    "spec": {"runtimeRef": {"name": "plain"}, "trainer": {"image": IMAGE, "command": COMMAND, "env": ENV}},
}


def experiment(trial_spec: dict[str, Any], algorithm: str, space: dict[str, str], **spec: Any) -> dict[str, Any]:
    """An Experiment, called demo."""
    return {
        "apiVersion": "kubeflow.org/v1beta1",
        "kind": "Experiment",
        "metadata": {"name": "demo"},
        "spec": {
            "objective": {"type": "minimize", "objectiveMetricName": "loss"},
            "algorithm": {"algorithmName": algorithm},
            "parallelTrialCount": 2,
            "parameters": [{"name": "lr", "parameterType": "double", "feasibleSpace": space}],
            "trialTemplate": {
                "primaryContainerName": "train",
                "trialParameters": [
                    {"name": "learningRate", "reference": "lr"},
                    {"name": "trial", "reference": "${trialSpec.Name}"},
                ],
                "trialSpec": trial_spec,
            },
            **spec,
        },
    }


def annotation(trial: dict[str, Any], name: str) -> Any:
    """What an annotation of a trial has as JSON."""
    return json.loads(trial["metadata"]["annotations"][f"trainer.kubeflow.org/{name}"])


RANGE = {"min": "0.01", "max": "0.05"}


@pytest.mark.parametrize(
    ("manifest", "trials"),
    [
        pytest.param(experiment(job(COMMAND), "random", RANGE, maxTrialCount=4), 4, id="random"),
        pytest.param(experiment(job(SHELL), "grid", STEPS), 5, id="grid-in-a-shell"),
        pytest.param(experiment(PYTORCH_JOB, "random", STEPS, maxTrialCount=3), 3, id="pytorch"),
        pytest.param(
            experiment(TRAIN_JOB, "tpe", RANGE | {"distribution": "logUniform"}, maxTrialCount=4),
            4,
            id="tpe-of-trainjobs",
        ),
    ],
)
def test_searches(cluster: Cluster, manifest: dict[str, Any], trials: int) -> None:
    """All trials end with a value that is read of their lines, and the result is the best of them."""
    converted = cluster.trainer("convert", "-f", "-", stdin=yaml.safe_dump(manifest))
    assert converted.returncode == 0, converted.stderr
    cluster.apply(*yaml.safe_load_all(converted.stdout))

    def status() -> dict[str, Any]:
        found: dict[str, Any] = (cluster.get("optimizationjob", "demo") or {}).get("status") or {}
        return found

    def ended() -> dict[str, Any] | None:
        found = status()
        return found if found.get("state") in {"Complete", "Failed"} else None

    found = until(ended, lambda: f"the sweep ends: {status()}", timeout=240, pause=0.5)
    assert found["trialCounts"] == {"running": 0, "succeeded": trials, "failed": 0, "pruned": 0}, found
    rates = {}
    for trial in cluster.list("trainjob"):
        (parameter,) = annotation(trial, "optimization-parameters")
        rates[trial["metadata"]["name"]] = float(parameter["value"])
        assert len(annotation(trial, "trainer-status-curve")["points"]) == 3
    assert len(rates) == trials
    least = min((rate - 0.03) ** 2 + 1 / 3 for rate in rates.values())
    best = rates[found["result"]["trainJobName"]]
    assert (best - 0.03) ** 2 + 1 / 3 == pytest.approx(least, abs=1e-6)
    assert float(found["result"]["value"]) == pytest.approx(least, abs=1e-6)
