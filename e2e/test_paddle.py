"""Real PaddlePaddle: paddle.distributed.launch on several nodes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.cluster import Cluster

EXAMPLE = Path(__file__).parents[1] / "examples" / "paddle-digits" / "trainjob.yaml"

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize(
    ("trainer", "ranks"),
    [
        pytest.param({}, ["0 of 2", "1 of 2"], id="one-process-per-node"),
        pytest.param({"numNodes": 1, "numProcPerNode": 2}, ["0 of 2"], id="two-processes-on-a-node"),
    ],
)
def test_processes_train_together(cluster: Cluster, trainer: Any, ranks: list[str]) -> None:
    """The processes of all nodes train to more than 90 % accuracy; a node's log has that of its first process."""
    if not cluster.is_local:
        pytest.skip("needs an image with PaddlePaddle and scikit-learn, which the example does not name")
    if not cluster.pod_network.startswith("netns"):
        pytest.skip(f"launchers know each other by the names of pods, which share an address ({cluster.pod_network})")
    script, job = yaml.safe_load_all(EXAMPLE.read_text())
    job["spec"]["trainer"] |= trainer
    cluster.apply(script, job)

    state = cluster.wait_for_state("paddle-digits", "Complete", "Failed", timeout=240)

    selector = "jobset.sigs.k8s.io/jobset-name=paddle-digits"
    log = cluster.kubectl("logs", "--selector", selector, "--tail=-1").stdout
    assert state == "Complete", log
    # The launcher writes into the same log, not always whole lines.
    assert set(re.findall(r"rank (\d of \d)", log)) == set(ranks), log
    (accuracy,) = re.findall(r"test accuracy: ([\d.]+) %", log)
    assert float(accuracy) > 90
