"""Real XGBoost: trees that several workers grow together."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.cluster import Cluster

EXAMPLE = Path(__file__).parents[1] / "examples" / "xgboost-digits" / "trainjob.yaml"

pytestmark = pytest.mark.timeout(180)


def example(name: str, **trainer: Any) -> list[dict[str, Any]]:
    """The ConfigMap and the TrainJob of the example, with other settings of the trainer."""
    script, job = yaml.safe_load_all(EXAMPLE.read_text())
    job["metadata"]["name"] = name
    job["spec"]["trainer"] |= trainer
    return [script, job]


def log_of(cluster: Cluster, name: str) -> str:
    """What all nodes have printed."""
    selector = f"jobset.sigs.k8s.io/jobset-name={name}"
    return cluster.kubectl("logs", "--selector", selector, "--tail=-1").stdout


@pytest.mark.parametrize(
    ("trainer", "workers"),
    [
        pytest.param({}, ["0 of 2 on node 0", "1 of 2 on node 1"], id="one-worker-per-node"),
        pytest.param(
            {"numProcPerNode": 2},
            ["0 of 4 on node 0", "1 of 4 on node 0", "2 of 4 on node 1", "3 of 4 on node 1"],
            id="two-workers-per-node",
        ),
    ],
)
def test_workers_grow_the_same_trees(cluster: Cluster, trainer: Any, workers: list[str]) -> None:
    """All workers of two nodes find the tracker and end with one model, which recognises nine of ten digits."""
    if not cluster.is_local:
        pytest.skip("needs an image with XGBoost and scikit-learn, which the example does not name")
    cluster.apply(*example("digits", **trainer))

    state = cluster.wait_for_state("digits", "Complete", "Failed", timeout=120)

    log = log_of(cluster, "digits")
    assert state == "Complete", log
    assert sorted(re.findall(r"worker (\d of \d on node \d)", log)) == workers
    models = re.findall(r"worker \d has model (\w+)", log)
    assert len(models) == len(workers)
    assert len(set(models)) == 1
    (accuracy,) = re.findall(r"test accuracy: ([\d.]+) %", log)
    assert float(accuracy) > 90
