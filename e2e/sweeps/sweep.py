"""Sweeps as tests submit them, and what they look at."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from e2e.cluster import Cluster
from e2e.progress_training import training
from e2e.waiting import until

KIND = "optimizationjobs.trainer.kubeflow.org"
METRIC = "val_loss"
SWEEP_LABEL = "trainer.kubeflow.org/optimization-job"
TRIAL_LABEL = "trainer.kubeflow.org/optimization-trial"
ASSIGNMENT = "trainer.kubeflow.org/optimization-parameters"
PRUNED = "trainer.kubeflow.org/optimization-pruned"
CURVE = "trainer.kubeflow.org/trainer-status-curve"


def optimization_job(
    name: str, body: str, parameters: Mapping[str, Any], *, trials: int, parallel: int, **spec: Any
) -> dict[str, Any]:
    """An OptimizationJob that minimizes `METRIC`.

    Args:
        name: of the sweep.
        body: of the program of each trial, see `progress_training.script`.
        parameters: search spaces by name.
        trials: their number.
        parallel: most that run at once.
        spec: further fields.
    """
    template = training(name, body)["spec"]
    return {
        "apiVersion": "trainer.kubeflow.org/v2alpha1",
        "kind": "OptimizationJob",
        "metadata": {"name": name},
        "spec": {
            "objectives": [{"metric": METRIC, "direction": "Minimize"}],
            "parameters": [{"name": each, "searchSpace": space} for each, space in parameters.items()],
            "numTrials": trials,
            "parallelTrials": parallel,
            "trainJobTemplate": {"spec": template},
            **spec,
        },
    }


def ended(cluster: Cluster, name: str, *, timeout: float = 240) -> dict[str, Any]:
    """The status of a sweep that is complete, once it is."""

    def complete() -> dict[str, Any] | None:
        status = status_of(cluster, name)
        assert status.get("state") != "Failed", status
        return status if status.get("state") == "Complete" else None

    return until(complete, lambda: f"{name} is complete: {status_of(cluster, name)}", timeout=timeout, pause=0.5)


def status_of(cluster: Cluster, name: str) -> dict[str, Any]:
    """The status of a sweep; empty before it has one."""
    status: dict[str, Any] = (cluster.get("optimizationjob", name) or {}).get("status") or {}
    return status


def trials_of(cluster: Cluster, name: str) -> dict[int, dict[str, Any]]:
    """The TrainJobs of a sweep by number."""
    jobs = [job for job in cluster.list("trainjob") if job["metadata"].get("labels", {}).get(SWEEP_LABEL) == name]
    return {int(job["metadata"]["labels"][TRIAL_LABEL]): job for job in jobs}


def assignment_of(trial: dict[str, Any]) -> dict[str, str]:
    """The parameters of a trial."""
    return {each["name"]: each["value"] for each in json.loads(trial["metadata"]["annotations"][ASSIGNMENT])}


def curve_of(trial: dict[str, Any]) -> Sequence[tuple[int, float]]:
    """Steps and values that are kept of a trial."""
    text = trial["metadata"]["annotations"].get(CURVE, '{"points": []}')
    return [(step, float(value)) for step, value in json.loads(text)["points"]]


def is_pruned(trial: dict[str, Any]) -> bool:
    """Whether the sweep has stopped it."""
    return PRUNED in trial["metadata"]["annotations"]
